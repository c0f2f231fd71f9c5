import { readFile } from 'node:fs/promises'
import type { Clock } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import { Authority, newKey } from './authority.ts'
import type { Post } from './authority.ts'
import { Cabinet } from './cabinet.ts'
import { main } from './certificates.ts'
import { Renewal } from './renewal.ts'
import type { Wanted } from './renewal.ts'
import type { AcmeSettings } from './settings.ts'

interface Parts {
  clock: Clock
  log: Log
  agent: string
  post: Post
  policyHosts: () => Promise<{ host: string; leads_here: boolean }[]>
  settled: (name: string, news: boolean) => Promise<void>
}

/** One CA, what is kept of it, and who sees to it. */
export interface Acme {
  cabinet: Cabinet
  renewal: Renewal
}

/** Opens what is kept of the CA below `directory`; asks it nothing yet. Throws a sentence when that cannot be read. */
export async function openAcme(settings: AcmeSettings, directory: string, parts: Parts): Promise<Acme> {
  const { clock, log, agent, post, settled } = parts
  const cabinet = await Cabinet.open(directory, settings.directory)
  const renewal = new Renewal({
    clock,
    log,
    cabinet,
    renew_before: settings.renew_before,
    wanted: () => wantedBy(settings, parts),
    // each time anew: the file with the roots may have been replaced
    obtain: async (hosts, signal) => {
      const ca = settings.ca_file === undefined ? undefined : await readFile(settings.ca_file, 'utf8')
      return new Authority({ ...settings, ca, agent }, await cabinet.accountKey(newKey), post).obtain(hosts, signal)
    },
    settled: ({ name }, news) => settled(name, news),
  })
  await renewal.start()
  return { cabinet, renewal }
}

/** One for the box itself, and one for each policy host: who has not made the DNS entry for theirs must not cost the box its own. */
async function wantedBy({ hosts, policies }: AcmeSettings, { policyHosts }: Parts): Promise<Wanted[]> {
  const others = policies ? await policyHosts() : []
  return [
    ...(hosts.length > 0 ? [{ name: main, hosts, ready: true }] : []),
    ...others
      .filter(({ host }) => !hosts.includes(host))
      .map(({ host, leads_here }) => ({ name: host, hosts: [host], ready: leads_here })),
  ]
}
