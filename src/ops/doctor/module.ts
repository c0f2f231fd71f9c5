import { createHmac, randomInt } from 'node:crypto'
import { resolve } from 'node:path'
import { type Config, sharedSettings } from '../../config.ts'
import { day, hour, iso } from '../../core/clock.ts'
import { callConfigured } from '../../net/configured.ts'
import { inquire } from '../../mailauth/inquire.ts'
import type { ModuleBasis, Module } from '../../module.ts'
import { type Database, sql } from '../../store/database.ts'
import type { Check } from './check.ts'
import { backups } from './checks/backups.ts'
import { blocklists } from './checks/blocklists.ts'
import { otherBoxes } from './checks/boxes.ts'
import { certificates, reports } from './checks/certificates.ts'
import { clock } from './checks/clock.ts'
import { databaseServer } from './checks/database.ts'
import { disk } from './checks/disk.ts'
import { domains, sending } from './checks/domains.ts'
import { bootstrapKey, masterKey } from './checks/keys.ts'
import { helo, operatorNames, ptr, resolver } from './checks/names.ts'
import { permissions } from './checks/permissions.ts'
import { port25 } from './checks/port25.ts'
import { listenersOf, ports } from './checks/ports.ts'
import { queue } from './checks/queue.ts'
import { secondFactors } from './checks/second-factors.ts'
import { unusualSettings } from './checks/settings.ts'
import { sms } from './checks/sms.ts'
import { objectStore, storeRewritten, storeWhole, storeWrites } from './checks/store.ts'
import { version } from './checks/version.ts'
import { webhooks } from './checks/webhooks.ts'
import type {
  BoxContext,
  BoxSources,
  ConfiguredPair,
  DoctorSettings,
  DoctorTest,
  ListenerEndpoint,
  OuterContext,
} from './context.ts'
import { Doctor } from './doctor.ts'
import { doctorChanged } from './model.ts'
import { ExternalView } from './external-view.ts'
import { boxOf } from './stored-lines.ts'
import { routes } from './routes.ts'

interface Deps extends ModuleBasis, BoxSources {
  listening: () => ListenerEndpoint[]
  testing?: DoctorTest | undefined
}

/** The milliseconds after the start without automatic checks. */
const grace = 60_000

export function doctorModule(deps: Deps): Module {
  let since: number | undefined
  const running = (): boolean => since !== undefined
  let checks = checksOf(deps, deps.config, running)
  const doctor = new Doctor({ ...deps, dataDirectory: doctorSettings(deps.config).data_dir, checks: () => checks })
  const due = async (): Promise<void> => {
    if (since === undefined || performance.now() - since <= grace) return
    const { run, several } = deps.database
    // while the server is away its machine is checked all the same
    await doctor.runDue(!several || (await run.leads('doctor').catch(() => false)))
  }
  return {
    name: 'doctor',
    events: [doctorChanged],
    routes: routes(doctor),
    // jitter, so that not all boxes query the same lists in the same second
    jobs: [{ name: 'doctor', schedule: `${randomInt(60)} */5 * * * *`, everywhere: true, run: due }],
    start: async () => {
      describeSettings(deps, deps.config)
      since = performance.now()
    },
    stop: async () => {
      since = undefined
    },
    reload: (config) => {
      describeSettings(deps, config)
      checks = checksOf(deps, config, running)
    },
  }
}

/** Tells other boxes on the same database of the settings, by hashes under the key of the box. */
function describeSettings({ database, seal, version: program }: Deps, config: Config): void {
  if (!database.several) return
  const key = seal.key('settings of boxes')
  const hash = (name: string, value: unknown): string =>
    createHmac('sha256', key)
      .update(JSON.stringify([name, value ?? null]))
      .digest('base64url')
      .slice(0, 16)
  const settings = Object.fromEntries(sharedSettings(config).map(({ name, value }) => [name, hash(name, value)]))
  database.run.describe({ version: program, settings })
}

function checksOf(deps: Deps, config: Config, running: () => boolean): Check[] {
  const { clock: time, database } = deps
  const settings = doctorSettings(config)
  const context: BoxContext = {
    ...deps,
    settings,
    externalView: new ExternalView(settings, () => inquire({ hostname: config.hostname, dns: config.dns })),
    now: () => time.now(),
    running,
    present: () => (running() ? deps.listening() : undefined),
    elsewhere: settings.time_url === undefined ? undefined : timeAt(settings.time_url),
    newest: () => newest(database),
    history: (free) => recordFreeSpace(database, time.now(), free),
  }
  const inner = [
    port25,
    domains,
    sending,
    storeWrites,
    storeWhole,
    storeRewritten,
    databaseServer,
    otherBoxes,
    objectStore,
    backups,
    queue,
    reports,
    webhooks,
    sms,
    operatorNames,
    secondFactors,
  ]
  return [...outerChecks(context), ...[...inner, bootstrapKey].map((check) => check(context))]
}

/** The checks of settings, files, ports and the DNS. */
export function outerChecks(context: OuterContext): Check[] {
  const checks = [
    unusualSettings,
    version,
    permissions,
    masterKey,
    disk,
    clock,
    ports,
    certificates,
    resolver,
    helo,
    ptr,
    blocklists,
  ]
  return checks.map((check) => check(context))
}

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
    pairs: [...pairOf('http.tls', http.tls, new URL(config.public_url).hostname), ...pairOf('smtp.tls', smtp.tls, hostname)],
    proxies: http.trusted_proxies.length + http.proxy_protocol.length,
    proxy_protocol: { http: http.proxy_protocol, smtp: smtp.proxy_protocol },
    mode: outbound.mode,
    port: outbound.port,
    ipv6: outbound.ipv6,
    strict: mail.mta_sts === 'enforce',
    acme: acme !== undefined,
    backup: config.backup,
    bootstrap_key: config.bootstrap_key,
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
  const box = boxOf(database)
  const past = await database.all<{ at: string; free: number }>(
    sql`SELECT at, free FROM doctor_free WHERE box = ${box} ORDER BY at`,
  )
  const last = past.at(-1)
  if (last === undefined || now - Date.parse(last.at) >= hour) {
    await database
      .transaction(async (tx) => {
        await tx.run(sql`DELETE FROM doctor_free WHERE at < ${iso(now - 7 * day)}`)
        await tx.run(sql`INSERT INTO doctor_free (box, at, free) VALUES (${box}, ${iso(now)}, ${free}) ON CONFLICT DO NOTHING`)
      })
      // a full disk cannot store a value
      .catch(() => undefined)
  }
  return past.map((row) => ({ at: Date.parse(row.at), free: row.free }))
}
