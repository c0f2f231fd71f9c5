import { networkInterfaces } from 'node:os'
import { canonicalAddress, Networks } from '../../net/networks.ts'
import { isPublic } from '../../net/public-addresses.ts'

const loopback = new Networks(['127.0.0.0/8', '::1'])
const everywhere = ['0.0.0.0', '::']

/** Which addresses mail may be delivered to. */
export class AddressPolicy {
  readonly #allowed: Networks
  readonly #listeners: () => { host: string; port: number }[]

  /** `listeners` are the addresses at which this box receives mail. */
  constructor(allowNetworks: readonly string[], listeners: () => { host: string; port: number }[]) {
    this.#allowed = new Networks(allowNetworks)
    this.#listeners = listeners
  }

  /** Why a connection to the address is not allowed, as part of a sentence; undefined when it is allowed. */
  refuses(address: string): string | undefined {
    const canonical = canonicalAddress(address)
    if (canonical === undefined) return JSON.stringify(address.slice(0, 100))
    return isPublic(canonical) || this.#allowed.has(canonical) ? undefined : canonical
  }

  /** True if this box itself listens there. */
  isOurs(address: string, port: number): boolean {
    const canonical = canonicalAddress(address) ?? ''
    return this.#listeners().some(
      (one) => one.port === port && (one.host === canonical || (everywhere.includes(one.host) && isLocal(canonical))),
    )
  }
}

function isLocal(address: string): boolean {
  if (loopback.has(address)) return true
  return Object.values(networkInterfaces()).some((list) => list?.some((one) => canonicalAddress(one.address) === address))
}
