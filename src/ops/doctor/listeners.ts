import type { AddressInfo } from 'node:net'
import type { ListenerEndpoint } from './checks/ports.ts'
import type { Endpoint } from './conversation.ts'

/** The current listeners of the box. */
export function presentListeners(
  { plain, tls }: { plain?: AddressInfo; tls?: AddressInfo },
  { addresses, submissionAddresses }: { addresses: Endpoint[]; submissionAddresses: { starttls: Endpoint[]; tls: Endpoint[] } },
): ListenerEndpoint[] {
  return [
    ...spoken('http', placesOf(plain)),
    ...spoken('https', placesOf(tls)),
    ...spoken('smtp', addresses),
    ...spoken('submission', submissionAddresses.starttls),
    ...spoken('submissions', submissionAddresses.tls),
  ]
}

/** The configured listeners; one without a host is on every address. */
export function spoken(
  speech: ListenerEndpoint['speech'],
  places: readonly { host: string | undefined; port: number }[],
): ListenerEndpoint[] {
  return places.map(({ host, port }) => ({ speech, host: host ?? '::', port }))
}

function placesOf(bound: AddressInfo | undefined): Endpoint[] {
  return bound ? [{ host: bound.address, port: bound.port }] : []
}
