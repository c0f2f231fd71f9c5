import type { Basis } from '../basis.ts'
import { readFile } from 'node:fs/promises'
import { Authority, newKey, type Post } from './authority.ts'
import { AcmeStore } from './acme-store.ts'
import { type AcmeSettings, main } from './certificates.ts'
import { Renewer, type WantedCertificate } from './renewal.ts'
import { SharedFiles } from './shared-files.ts'

interface Deps extends Pick<Basis, 'clock' | 'log' | 'database' | 'seal'> {
  agent: string
  post: Post
  policyHosts: () => Promise<{ host: string; leads_here: boolean }[]>
  takeOver: () => Promise<void>
  settled: (name: string, news: boolean) => Promise<void>
}

/** One CA, its stored data, and its renewer. */
export interface Acme {
  acmeStore: AcmeStore
  renewal: Renewer
}

/** Opens the stored data of the CA below `directory`, without contacting it. Throws a sentence when it cannot be read. */
export async function openAcme(settings: AcmeSettings, directory: string, deps: Deps): Promise<Acme> {
  const { clock, log, database, agent, post, takeOver, settled } = deps
  const { several } = database
  const acmeStore = await AcmeStore.open(directory, settings.directory, (name) =>
    several ? new SharedFiles(deps, name) : undefined,
  )
  const renewal = new Renewer({
    clock,
    log,
    acmeStore,
    run: several ? database.run : undefined,
    renew_before: settings.renew_before,
    wanted: () => wantedBy(settings, deps),
    // read each time, as the file with the roots may have been replaced
    obtain: async (hosts, signal) => {
      const ca = settings.ca_file === undefined ? undefined : await readFile(settings.ca_file, 'utf8')
      return new Authority({ ...settings, ca, agent }, await acmeStore.accountKey(newKey), post).obtain(hosts, signal)
    },
    takeOver,
    settled: ({ name }, news) => settled(name, news),
  })
  await renewal.load()
  return { acmeStore, renewal }
}

/** One certificate for the box itself, and one for each policy host: a missing DNS record of one domain must not block the box's own. */
async function wantedBy({ hosts, policies }: AcmeSettings, { policyHosts }: Deps): Promise<WantedCertificate[]> {
  const others = policies ? await policyHosts() : []
  return [
    ...(hosts.length > 0 ? [{ name: main, hosts, ready: true }] : []),
    ...others
      .filter(({ host }) => !hosts.includes(host))
      .map(({ host, leads_here }) => ({ name: host, hosts: [host], ready: leads_here })),
  ]
}
