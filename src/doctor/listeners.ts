import type { AddressInfo } from 'node:net'
import type { Listener } from './checks/ports.ts'
import type { Place } from './conversation.ts'

/** Every place where the box answers now. */
export function presentListeners(
  { plain, tls }: { plain?: AddressInfo; tls?: AddressInfo },
  { addresses, submissionAddresses }: { addresses: Place[]; submissionAddresses: { starttls: Place[]; tls: Place[] } },
): Listener[] {
  return [
    ...spoken('http', placesOf(plain)),
    ...spoken('https', placesOf(tls)),
    ...spoken('smtp', addresses),
    ...spoken('submission', submissionAddresses.starttls),
    ...spoken('submissions', submissionAddresses.tls),
  ]
}

/** Listeners that the settings name; without a host one is on every address of the machine. */
export function spoken(speech: Listener['speech'], places: readonly { host: string | undefined; port: number }[]): Listener[] {
  return places.map(({ host, port }) => ({ speech, host: host ?? '::', port }))
}

function placesOf(bound: AddressInfo | undefined): Place[] {
  return bound ? [{ host: bound.address, port: bound.port }] : []
}
