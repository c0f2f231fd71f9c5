import { randomInt } from 'node:crypto'
import { resolve } from 'node:path'
import type { Config } from '../../config.ts'
import { day, hour, iso } from '../../core/clock.ts'
import type { CronJob } from '../../core/cron.ts'
import { masterKeySource } from '../../core/service-unit.ts'
import { callConfigured } from '../../net/outside.ts'
import type { EventType } from '../../events/model.ts'
import type { AnyRoute } from '../../http/route.ts'
import type { FreshInquiry } from '../../mailauth/inquire.ts'
import type { ModuleBasis, Module } from '../../module.ts'
import { type Database, sql } from '../../store/database.ts'
import type { Check } from './check.ts'
import { backups, type Newest } from './checks/backups.ts'
import { type ConfiguredPair, reports, type ReportStatus } from './checks/certificates.ts'
import { domains, type LookUpDomains } from './checks/domains.ts'
import { bootstrapKey } from './checks/keys.ts'
import { operatorNames } from './checks/names.ts'
import { type GreetServer, port25 } from './checks/port25.ts'
import { type ListenerEndpoint, listenersOf } from './checks/ports.ts'
import { queue } from './checks/queue.ts'
import { secondFactors } from './checks/second-factors.ts'
import { type Carrier, sms } from './checks/sms.ts'
import { storeWhole, storeWrites } from './checks/store.ts'
import { webhooks } from './checks/webhooks.ts'
import { Doctor } from './doctor.ts'
import { doctorChanged } from './model.ts'
import { type DoctorSettings, type DoctorTest, outerChecks } from './outer-checks.ts'
import { ExternalView } from './external-view.ts'
import { routes } from './routes.ts'

interface Deps extends ModuleBasis {
  /** The existing accounts. */
  state: { readonly data: { created_at: string; accounts: readonly { id: string }[] } }
  /** The current listeners. */
  listening: () => ListenerEndpoint[]
  inquire: (settings: { hostname: string; dns: Config['dns'] }) => FreshInquiry
  lookUpDomains: LookUpDomains
  probe: GreetServer
  /** True if the domain is hosted here. */
  isOurs: (domain: string) => boolean
  /** The id of this key, if it is valid. */
  keyOf: (key: string) => Promise<string | undefined>
  carrier: Carrier | undefined
  reports: ReportStatus
  /** Throws a sentence when the directory cannot be read. */
  newestBackup: (settings: Config['backup']) => Promise<Newest | undefined>
  testing?: DoctorTest | undefined
}

/** The milliseconds after the start without automatic checks. */
const grace = 60_000

/** The doctor: checks the box, and suggests fixes. */
export class DoctorModule implements Module {
  readonly name = 'doctor'
  readonly events: EventType[] = [doctorChanged]
  readonly routes: AnyRoute[]
  readonly jobs: CronJob[]
  readonly #deps: Deps
  #checks: Check[]
  #since: number | undefined

  constructor(deps: Deps) {
    this.#deps = deps
    this.#checks = this.#made(deps.config)
    const doctor = new Doctor({ ...deps, dataDirectory: doctorSettings(deps.config).data_dir, checks: () => this.#checks })
    this.routes = routes(doctor)
    const due = async (): Promise<void> => {
      if (this.#since !== undefined && performance.now() - this.#since > grace) await doctor.runDue()
    }
    // jitter, so that not all boxes query the same lists in the same second
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
    const deps = this.#deps
    const { clock, database, inquire, publicUrl } = deps
    const settings = doctorSettings(config)
    const kept = { database, dataDirectory: settings.data_dir }
    const externalView = new ExternalView(settings, () => inquire({ hostname: config.hostname, dns: config.dns }))
    const now = (): number => clock.now()
    const running = (): boolean => this.#since !== undefined
    return [
      ...outerChecks(settings, {
        externalView,
        now,
        publicUrl,
        version: deps.version,
        present: () => (running() ? deps.listening() : undefined),
        testing: deps.testing,
        elsewhere: settings.time_url === undefined ? undefined : timeAt(settings.time_url),
        newest: () => newest(database),
        history: (free) => recordFreeSpace(database, now(), free),
      }),
      port25({ ...deps, ...settings, externalView, domain: settings.probe_domain, now }),
      domains(deps.lookUpDomains),
      storeWrites(kept),
      storeWhole(kept),
      backups({
        directory: config.backup.directory,
        newest: () => deps.newestBackup(config.backup),
        now,
        masterKey: masterKeySource(settings),
        created: Date.parse(deps.state.data.created_at),
      }),
      queue({ database, now, running }),
      reports(deps.reports),
      webhooks({ database, now }),
      sms(deps.carrier),
      operatorNames({ database, domain: config.mail.domain, account: deps.account }),
      secondFactors({ database, accounts: () => deps.state.data.accounts.map(({ id }) => id) }),
      bootstrapKey({ bootstrap: settings.bootstrap, opens: () => deps.keyOf(config.bootstrap_key ?? '') }),
    ]
  }
}

/** The settings of the doctor. */
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
      ...listenersOf('http', [http.listen]),
      ...listenersOf('https', http.tls ? [http.tls.listen] : []),
      ...listenersOf('smtp', smtp.listen),
      ...listenersOf('submission', submission.listen),
      ...listenersOf('submissions', submission.listen_tls),
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

/** The configured files; none where ACME or a self-signed certificate is used. */
function pairOf(
  setting: string,
  tls: { cert?: string | undefined; key?: string | undefined } | undefined,
  name: string,
): ConfiguredPair[] {
  return tls?.cert === undefined || tls.key === undefined ? [] : [{ setting, cert: tls.cert, key: tls.key, name }]
}

function nameOf(url: string): string {
  return new URL(url).hostname
}

/** The `Date` of a response is in whole seconds (RFC 9110 5.6.7): half a second is added. */
function timeAt(url: string): () => Promise<number> {
  return async () => {
    const input = { method: 'GET' as const, headers: [], body: null, signal: AbortSignal.timeout(10_000), limit: 1024 * 1024 }
    const { headers } = await callConfigured(new URL(url), input)
    const time = Date.parse([headers['date']].flat()[0] ?? '')
    if (Number.isNaN(time)) throw new Error('its response has no Date')
    return time + 500
  }
}

async function newest(database: Database): Promise<number | undefined> {
  const row = await database.get<{ created_at: string }>(sql`SELECT created_at FROM events ORDER BY seq DESC LIMIT 1`)
  return row && Date.parse(row.created_at)
}

/** Stores one value an hour for a week; returns the earlier ones. */
async function recordFreeSpace(database: Database, now: number, free: number): Promise<{ at: number; free: number }[]> {
  const past = await database.all<{ at: string; free: number }>(sql`SELECT at, free FROM doctor_free ORDER BY at`)
  const last = past.at(-1)
  if (last === undefined || now - Date.parse(last.at) >= hour) {
    await database
      .transaction(async (tx) => {
        await tx.run(sql`DELETE FROM doctor_free WHERE at < ${iso(now - 7 * day)}`)
        await tx.run(sql`INSERT INTO doctor_free (at, free) VALUES (${iso(now)}, ${free}) ON CONFLICT DO NOTHING`)
      })
      // a full disk cannot store a value
      .catch(() => undefined)
  }
  return past.map((row) => ({ at: Date.parse(row.at), free: row.free }))
}
