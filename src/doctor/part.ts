import { randomInt } from 'node:crypto'
import { resolve } from 'node:path'
import type { Config } from '../config.ts'
import { iso } from '../core/clock.ts'
import type { Clock } from '../core/clock.ts'
import type { Job } from '../core/cron.ts'
import type { Log } from '../core/log.ts'
import { masterKeySource } from '../core/service-unit.ts'
import type { Metrics } from '../core/metrics.ts'
import { callInside } from '../delivery/outside.ts'
import type { EventLog } from '../events/log.ts'
import type { EventType } from '../events/model.ts'
import type { AnyRoute } from '../http/route.ts'
import type { FreshInquiry } from '../mail/inquire.ts'
import type { Part } from '../part.ts'
import { sql } from '../store/database.ts'
import type { Database } from '../store/database.ts'
import type { Check } from './check.ts'
import { backups } from './checks/backups.ts'
import type { Newest } from './checks/backups.ts'
import type { Pair } from './checks/certificates.ts'
import { domains } from './checks/domains.ts'
import type { Standing } from './checks/domains.ts'
import { bootstrapKey } from './checks/keys.ts'
import { operatorNames } from './checks/operator-names.ts'
import { port25 } from './checks/port25.ts'
import type { Probe } from './checks/port25.ts'
import type { Listener } from './checks/ports.ts'
import { queue } from './checks/queue.ts'
import { reports } from './checks/reports.ts'
import type { ReportStatus } from './checks/reports.ts'
import { secondFactors } from './checks/second-factors.ts'
import { sms } from './checks/sms.ts'
import type { Carrier } from './checks/sms.ts'
import { storeWhole, storeWrites } from './checks/store.ts'
import { webhooks } from './checks/webhooks.ts'
import { Doctor } from './doctor.ts'
import { spoken } from './listeners.ts'
import { doctorChanged } from './model.ts'
import { outerChecks } from './outer-checks.ts'
import type { DoctorTest } from './outer-checks.ts'
import { Outlook } from './outlook.ts'
import { routes } from './routes.ts'
import type { DoctorSettings } from './settings.ts'

interface Needs {
  config: Config
  database: Database
  events: EventLog
  clock: Clock
  log: Log
  metrics: Metrics
  /** The account of the operator. */
  account: string
  /** The accounts that there are. */
  state: { readonly data: { created_at: string; accounts: readonly { id: string }[] } }
  version: string
  publicUrl: () => string
  /** Where the box listens. */
  listening: () => Listener[]
  inquire: (settings: { hostname: string; dns: Config['dns'] }) => FreshInquiry
  standing: Standing
  probe: Probe
  /** Whether mail for the domain is ours. */
  isOurs: (domain: string) => boolean
  /** The id of the key that this opens, if any. */
  keyOf: (key: string) => Promise<string | undefined>
  carrier: Carrier | undefined
  reports: ReportStatus
  /** Throws a sentence when the directory cannot be read. */
  newestBackup: (settings: Config['backup']) => Promise<Newest | undefined>
  testing?: DoctorTest | undefined
}

/** A box that has just come up is not judged yet, for so many milliseconds. */
const grace = 60_000

/** Looks after the box: what is not well, and what mends it. */
export class DoctorPart implements Part {
  readonly name = 'doctor'
  readonly events: EventType[] = [doctorChanged]
  readonly routes: AnyRoute[]
  readonly jobs: Job[]
  readonly #needs: Needs
  #checks: Check[]
  #since: number | undefined

  constructor(needs: Needs) {
    this.#needs = needs
    this.#checks = this.#made(needs.config)
    const doctor = new Doctor({ ...needs, dataDirectory: doctorSettings(needs.config).data_dir, checks: () => this.#checks })
    this.routes = routes(doctor)
    const due = async (): Promise<void> => {
      if (this.#since !== undefined && performance.now() - this.#since > grace) await doctor.runDue()
    }
    // not all boxes ask the same lists in the same second
    this.jobs = [{ name: 'doctor', schedule: `${randomInt(60)} */5 * * * *`, run: due }]
  }

  async start(): Promise<void> {
    this.#since = performance.now()
  }

  async stop(): Promise<void> {
    this.#since = undefined
  }

  reload(config: Config): void {
    this.#checks = this.#made(config)
  }

  #made(config: Config): Check[] {
    const needs = this.#needs
    const { clock, database, inquire, publicUrl } = needs
    const settings = doctorSettings(config)
    const kept = { database, dataDirectory: settings.data_dir }
    const outlook = new Outlook(settings, () => inquire({ hostname: config.hostname, dns: config.dns }))
    const now = (): number => clock.now()
    const running = (): boolean => this.#since !== undefined
    return [
      ...outerChecks(settings, {
        outlook,
        now,
        publicUrl,
        version: needs.version,
        present: () => (running() ? needs.listening() : undefined),
        testing: needs.testing,
        elsewhere: settings.time_url === undefined ? undefined : timeAt(settings.time_url),
        newest: () => newest(database),
        history: (free) => keepFree(database, now(), free),
      }),
      port25({ ...needs, ...settings, outlook, domain: settings.probe_domain, now }),
      domains(needs.standing),
      storeWrites(kept),
      storeWhole(kept),
      backups({
        directory: config.backup.directory,
        newest: () => needs.newestBackup(config.backup),
        now,
        masterKey: masterKeySource(settings),
        created: Date.parse(needs.state.data.created_at),
      }),
      queue({ database, now, running }),
      reports(needs.reports),
      webhooks({ database, now }),
      sms(needs.carrier),
      operatorNames({ database, domain: config.mail.domain, account: needs.account }),
      secondFactors({ database, accounts: () => needs.state.data.accounts.map(({ id }) => id) }),
      bootstrapKey({ bootstrap: settings.bootstrap, opens: () => needs.keyOf(config.bootstrap_key ?? '') }),
    ]
  }
}

/** What the doctor takes of the settings. */
export function doctorSettings(config: Config): DoctorSettings {
  const { hostname, http, smtp, submission, outbound, mail, acme, doctor } = config
  return {
    hostname,
    domain: mail.domain,
    data_dir: resolve(config.data_dir),
    keys_dir: resolve(config.keys_dir),
    master_key_file: config.master_key_file,
    min_free: config.min_free,
    listeners: [
      ...spoken('http', [http.listen]),
      ...spoken('https', http.tls ? [http.tls.listen] : []),
      ...spoken('smtp', smtp.listen),
      ...spoken('submission', submission.listen),
      ...spoken('submissions', submission.listen_tls),
    ],
    pairs: [...pairOf('http.tls', http.tls, nameOf(config.public_url)), ...pairOf('smtp.tls', smtp.tls, hostname)],
    proxies: http.trusted_proxies.length,
    mode: outbound.mode,
    port: outbound.port,
    ipv6: outbound.ipv6,
    strict: mail.mta_sts === 'enforce',
    acme: acme !== undefined,
    bootstrap: config.bootstrap_key !== undefined,
    ...doctor,
    time_url: doctor.time_url,
    servers: config.dns.servers,
  }
}

/** Files that the settings name; there may be none where the box looks after its certificates itself. */
function pairOf(setting: string, tls: { cert?: string | undefined; key?: string | undefined } | undefined, name: string): Pair[] {
  return tls?.cert === undefined || tls.key === undefined ? [] : [{ setting, cert: tls.cert, key: tls.key, name }]
}

function nameOf(url: string): string {
  return new URL(url).hostname
}

/** The `Date` of an answer is in whole seconds (RFC 9110 5.6.7): half of one is added. */
function timeAt(url: string): () => Promise<number> {
  return async () => {
    const wish = { method: 'GET' as const, headers: [], body: null, signal: AbortSignal.timeout(10_000), limit: 1024 * 1024 }
    const { headers } = await callInside(new URL(url), wish)
    const time = Date.parse([headers['date']].flat()[0] ?? '')
    if (Number.isNaN(time)) throw new Error('its answer has no Date')
    return time + 500
  }
}

async function newest(database: Database): Promise<number | undefined> {
  const row = await database.get<{ created_at: string }>(sql`SELECT created_at FROM events ORDER BY seq DESC LIMIT 1`)
  return row && Date.parse(row.created_at)
}

const hour = 3_600_000

/** Keeps one figure an hour for a week; answers those of before. */
async function keepFree(database: Database, now: number, free: number): Promise<{ at: number; free: number }[]> {
  const past = await database.all<{ at: string; free: number }>(sql`SELECT at, free FROM doctor_free ORDER BY at`)
  const last = past.at(-1)
  if (last === undefined || now - Date.parse(last.at) >= hour) {
    await database
      .transaction(async (tx) => {
        await tx.run(sql`DELETE FROM doctor_free WHERE at < ${iso(now - 7 * 24 * hour)}`)
        await tx.run(sql`INSERT INTO doctor_free (at, free) VALUES (${iso(now)}, ${free}) ON CONFLICT DO NOTHING`)
      })
      // a full disk takes no figure of how full it is
      .catch(() => undefined)
  }
  return past.map((row) => ({ at: Date.parse(row.at), free: row.free }))
}
