import { randomInt } from 'node:crypto'
import type { Inbound } from '../inbound.ts'
import { noSuchCountry } from '../numbers.ts'
import { Rejected } from '../provider.ts'
import type { SmsProvider } from '../provider.ts'

/** Ranges that regulators keep for examples: no such number ever rings at anybody's. */
const ranges: Record<string, () => string> = {
  US: northAmerican,
  CA: northAmerican,
  // Ofcom, numbers for drama
  GB: () => `+447700900${digits(3)}`,
  // ARCEP, decision 2018-0881
  FR: () => `+336399800${digits(2)}`,
}

interface Parts {
  inbound: () => Inbound
  isTaken: (number: string) => Promise<boolean>
}

/** Text messages that never leave the box: from identity to identity, and from whoever injects one. */
export function loopback({ inbound, isTaken }: Parts): SmsProvider {
  return {
    name: 'loopback',
    capabilities: { send: true, receive: true, provision: true, receives_otp: true },
    // a message handed over twice is one: it is kept under the id of the one that was sent
    idempotent: true,
    async send({ id, from, to, body }) {
      const kept = await inbound().receive('loopback', { provider_id: id, from, to, body, media: [] })
      if (kept === 'nobody')
        throw new Rejected('unknown_number', `The loopback reaches numbers of this box only, and ${to} is none.`)
      return { provider_id: id, status: 'delivered' }
    },
    async provision(country) {
      const next = ranges[country]
      if (!next) throw noSuchCountry(country, Object.keys(ranges))
      for (let attempt = 0; attempt < 1000; attempt += 1) {
        const number = next()
        if (!(await isTaken(number))) return { number, provider_id: null }
      }
      throw noSuchCountry(country)
    },
    async release() {},
  }
}

// 555-0100 to 555-0199 of any area (ATIS-0300115)
function northAmerican(): string {
  const area = `${randomInt(2, 10)}${randomInt(0, 9)}${randomInt(0, 10)}`
  return area.endsWith('11') ? northAmerican() : `+1${area}55501${digits(2)}`
}

function digits(count: number): string {
  return String(randomInt(10 ** count)).padStart(count, '0')
}
