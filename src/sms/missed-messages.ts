import { type Clock, hour, second } from '../core/clock.ts'
import type { Log } from '../core/log.ts'
import type { Inbound } from './inbound.ts'
import type { Numbers } from './numbers.ts'
import type { SmsProvider } from './provider.ts'

interface Deps {
  clock: Clock
  log: Log
  inbound: Inbound
  numbers: Numbers
  provider: SmsProvider | undefined
}

/** How far back the first look of a run goes, and every other, in milliseconds. */
const backThen = 48 * hour
const lately = 2 * hour

/** Messages that came to our numbers while the provider could not hand them in: it tries once, and the box may have been down. */
export class MissedMessages {
  readonly #deps: Deps
  #looked = false

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** Fetches what is missing. Throws what the provider throws. */
  async collect(): Promise<void> {
    const { provider, clock, numbers, inbound, log } = this.#deps
    if (!provider?.missed) return
    const { name } = provider
    for (const { provider_id, to, sent, whole } of await provider.missed(clock.now() - (this.#looked ? lately : backThen))) {
      const holder = await numbers.holder(to)
      // a number may have been somebody else's before; the provider's times are whole seconds
      if (!holder || sent < Date.parse(holder.created_at) - second) continue
      if (await inbound.has(name, provider_id)) continue
      if ((await inbound.receive(name, await whole())) !== 'kept') continue
      log.warn({ provider: name, provider_id, to }, 'a text message that was not handed in was fetched')
    }
    this.#looked = true
  }
}
