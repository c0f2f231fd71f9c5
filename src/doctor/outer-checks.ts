import type { Check } from './check.ts'
import { blocklists } from './checks/blocklists.ts'
import { certificates } from './checks/certificates.ts'
import { clock } from './checks/clock.ts'
import type { Run } from './checks/clock.ts'
import { disk } from './checks/disk.ts'
import type { Measure } from './checks/disk.ts'
import { helo, ptr } from './checks/names.ts'
import { masterKey } from './checks/master-key.ts'
import { permissions } from './checks/permissions.ts'
import { ports } from './checks/ports.ts'
import type { Listener } from './checks/ports.ts'
import { resolver } from './checks/resolver.ts'
import { settings as meant } from './checks/settings.ts'
import { version } from './checks/version.ts'
import type { Outlook } from './outlook.ts'
import type { DoctorSettings } from './settings.ts'

/** What tests put in place of the machine. */
export interface DoctorTest {
  measure?: Measure
  run?: Run
  versions?: Record<string, string>
}

interface Needs {
  outlook: Outlook
  now: () => number
  publicUrl: () => string
  version: string
  /** Where the box listens; undefined when it does not run. */
  present: () => Listener[] | undefined
  testing?: DoctorTest | undefined
  elsewhere?: (() => Promise<number>) | undefined
  newest?: () => Promise<number | undefined>
  history?: (free: number) => Promise<{ at: number; free: number }[]>
}

/** What can be seen of a box by its settings, its files and its ports, whether or not it can be opened. */
export function outerChecks(settings: DoctorSettings, needs: Needs): Check[] {
  const { outlook, now, publicUrl, present, testing = {}, elsewhere, newest, history } = needs
  const { hostname, data_dir, keys_dir, listeners } = settings
  return [
    meant({ ...settings, publicUrl, wanted: listeners }),
    version({ box: needs.version, ...(testing.versions ? { versions: testing.versions } : {}) }),
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
      nameOf: ({ speech }) => (speech === 'https' ? new URL(publicUrl()).hostname : hostname),
      strict: settings.strict,
      acme: settings.acme,
      now,
    }),
    resolver({ outlook, domain: settings.domain, servers: settings.servers }),
    helo(outlook, publicUrl),
    ptr(outlook, settings.mode === 'direct'),
    blocklists(outlook, settings.blocklists),
  ]
}
