import type { Check } from './check.ts'
import { blocklists } from './checks/blocklists.ts'
import { certificates, type ConfiguredPair } from './checks/certificates.ts'
import { clock, type Run } from './checks/clock.ts'
import { disk, type Measure } from './checks/disk.ts'
import { helo, ptr, resolver } from './checks/names.ts'
import { masterKey } from './checks/keys.ts'
import { permissions } from './checks/permissions.ts'
import { type ListenerEndpoint, ports } from './checks/ports.ts'
import { settings as meant } from './checks/settings.ts'
import { version } from './checks/version.ts'
import type { ExternalView } from './external-view.ts'

/** Replaces the machine in tests. */
export interface DoctorTest {
  measure?: Measure
  run?: Run
  versions?: Record<string, string>
}

interface Deps {
  externalView: ExternalView
  now: () => number
  publicUrl: () => string
  version: string
  /** The current listeners; undefined while the box does not run. */
  present: () => ListenerEndpoint[] | undefined
  testing?: DoctorTest | undefined
  elsewhere?: (() => Promise<number>) | undefined
  newest?: () => Promise<number | undefined>
  history?: (free: number) => Promise<{ at: number; free: number }[]>
}

/** Checks of settings, files and ports, which work whether or not the box can be opened. */
export function outerChecks(settings: DoctorSettings, deps: Deps): Check[] {
  const { externalView, now, publicUrl, present, testing = {}, elsewhere, newest, history } = deps
  const { hostname, data_dir, keys_dir, listeners } = settings
  return [
    meant({ ...settings, publicUrl, wanted: listeners }),
    version({ box: deps.version, ...(testing.versions ? { versions: testing.versions } : {}) }),
    permissions({
      dataDirectory: data_dir,
      keysDirectory: keys_dir,
      masterKeyFile: settings.master_key_file,
      privateKeys: [...new Set(settings.pairs.map(({ key }) => key))],
      running: () => present() !== undefined,
    }),
    masterKey(settings),
    disk({ directory: data_dir, minimum: settings.min_free, measure: testing.measure, history, now }),
    clock({ now, newest, elsewhere, source: settings.time_url, run: testing.run }),
    ports({ hostname, wanted: listeners, present, dataDirectory: data_dir }),
    certificates({
      pairs: settings.pairs,
      present,
      nameOf: ({ protocol }) => (protocol === 'https' ? new URL(publicUrl()).hostname : hostname),
      strict: settings.strict,
      acme: settings.acme,
      now,
    }),
    resolver({ externalView, domain: settings.domain, servers: settings.servers }),
    helo(externalView, publicUrl),
    ptr(externalView, settings.mode === 'direct'),
    blocklists(externalView, settings.blocklists),
  ]
}

/** The settings of the doctor; directories are absolute. */
export interface DoctorSettings {
  hostname: string
  domain: string
  data_dir: string
  keys_dir: string
  master_key_file: string | undefined
  min_free: number
  listeners: ListenerEndpoint[]
  pairs: ConfiguredPair[]
  proxies: number
  mode: 'direct' | 'relay' | 'none'
  port: number
  ipv6: boolean
  strict: boolean
  acme: boolean
  bootstrap: boolean
  addresses: string[]
  blocklists: string[]
  probe_domain: string
  time_url: string | undefined
  /** Name servers; empty: those of the system. */
  servers: string[]
}
