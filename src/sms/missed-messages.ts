import type { Basis } from '../basis.ts'
import { hour, second } from '../core/clock.ts'
import type { Inbound } from './inbound.ts'
import type { Numbers } from './numbers.ts'
import type { SmsProvider } from './provider.ts'

interface Deps extends Pick<Basis, 'clock' | 'log'> {
  inbound: Inbound
  numbers: Numbers
  provider: SmsProvider | undefined
}

/** How far back the first and the later queries reach, in milliseconds. */
const backThen = 48 * hour
const lately = 2 * hour

/** Fetches received messages whose callback failed, as while the box was down: the provider calls only once. */
export class MissedMessages {
  readonly #deps: Deps
  #looked = false

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** Fetches missing messages. Throws what the provider throws. */
  async collect(): Promise<void> {
    const { provider, clock, numbers, inbound, log } = this.#deps
    if (!provider?.missed) return
    const { name } = provider
    for (const { provider_id, to, sent, whole } of await provider.missed(clock.now() - (this.#looked ? lately : backThen))) {
      const holder = await numbers.holder(to)
      // a number may have had another owner before; the provider's times are whole seconds
      if (!holder || sent < Date.parse(holder.created_at) - second) continue
      if (await inbound.has(name, provider_id)) continue
      if ((await inbound.receive(name, await whole())) !== 'kept') continue
      log.warn({ provider: name, provider_id, to }, 'missed text message fetched')
    }
    this.#looked = true
  }
}
