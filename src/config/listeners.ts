import { isIP } from 'node:net'
import { formatEndpoint } from '../core/domain-names.ts'
import { spelled } from './problems.ts'
import type { SettingFlaw } from './sending.ts'
import type { Endpoint } from '../net/listen.ts'

interface Listening {
  http: { listen: Endpoint; tls?: { listen: Endpoint } | undefined }
  smtp: { listen: Endpoint[] }
  submission: { listen: Endpoint[]; listen_tls: Endpoint[] }
  metrics: { listen?: Endpoint | undefined }
  acme?: { listen?: Endpoint | undefined } | undefined
}

interface Listener extends Endpoint {
  path: (string | number)[]
}

/** Listeners that conflict with another one: the later of two that share a port and an address. */
export function listenerFlaws(settings: Listening): SettingFlaw[] {
  const all = listeners(settings)
  return all.flatMap((listener, index) => {
    const other = all.slice(0, index).find((one) => clash(one, listener))
    if (!other) return []
    const why = `must use a different port than ${spelled(other.path)} (${formatEndpoint(other)})`
    return [{ path: listener.path, why }]
  })
}

function listeners({ http, smtp, submission, metrics, acme }: Listening): Listener[] {
  return [
    ...single(http.listen, 'http', 'listen'),
    ...single(http.tls?.listen, 'http', 'tls', 'listen'),
    ...several(smtp.listen, 'smtp', 'listen'),
    ...several(submission.listen, 'submission', 'listen'),
    ...several(submission.listen_tls, 'submission', 'listen_tls'),
    ...single(metrics.listen, 'metrics', 'listen'),
    ...single(acme?.listen, 'acme', 'listen'),
  ]
}

function several(list: Endpoint[], ...path: string[]): Listener[] {
  return list.map((endpoint, index) => ({ ...endpoint, path: [...path, index] }))
}

function single(endpoint: Endpoint | undefined, ...path: string[]): Listener[] {
  return endpoint ? [{ ...endpoint, path }] : []
}

function clash(one: Listener, other: Listener): boolean {
  if (one.port !== other.port || one.port === 0) return false
  const [first, second] = [addressesOf(one), addressesOf(other)]
  // in a list that also names an IPv4 address, [::] listens on IPv6 only
  const beside = one.path.slice(0, -1).join() === other.path.slice(0, -1).join() && typeof one.path.at(-1) === 'number'
  if (beside && isIP(one.host ?? '::') + isIP(other.host ?? '::') === 10) return false
  return first.some((address) => second.some((its) => overlap(address, its) || overlap(its, address)))
}

/** `::` takes every address of IPv4 too. */
function addressesOf({ host = '::' }: Endpoint): string[] {
  return host === 'localhost' ? ['127.0.0.1', '::1'] : [host]
}

/** True if listening at the one takes the other; names are only compared as such. */
function overlap(one: string, other: string): boolean {
  if (one === other || one === '::') return true
  return one === '0.0.0.0' && isIP(other) === 4
}
