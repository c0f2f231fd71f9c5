import { randomInt } from 'node:crypto'
import type { Inbound } from '../inbound.ts'
import { noSuchCountry } from '../numbers.ts'
import { Rejected, type SmsProvider } from '../provider.ts'

/** Number ranges that regulators reserve for examples and fiction. */
const ranges: Record<string, () => string> = {
  US: () => northAmerican(areas.US),
  CA: () => northAmerican(areas.CA),
  // Ofcom, numbers for drama
  GB: () => `+447700900${digits(3)}`,
  // ARCEP, decision 2018-0881
  FR: () => `+336399800${digits(2)}`,
}

interface Deps {
  inbound: () => Inbound
  isTaken: (number: string) => Promise<boolean>
}

/** Text messages that stay inside the box: between identities, and from injected messages. */
export function loopback({ inbound, isTaken }: Deps): SmsProvider {
  return {
    name: 'loopback',
    capabilities: { send: true, receive: true, provision: true, receives_otp: true },
    // stored under the id of the sent message, so that a repeat is stored once
    idempotent: true,
    async send({ id, from, to, body }) {
      const kept = await inbound().receive('loopback', { provider_id: id, from, to, body, media: [] })
      if (kept === 'nobody')
        throw new Rejected('unknown_number', `The loopback provider reaches only numbers of this box, and ${to} is not one.`)
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

// twenty countries share the numbering plan: the area code distinguishes them
const areas = {
  US: (
    '201 202 203 205 206 207 208 209 210 212 213 214 215 216 217 218 219 224 225 228 229 231 234 239 240 248 251 252 253 254 ' +
    '301 302 303 304 305 307 308 309 310 312 313 314 315 316 317 318 319 320 321 323 330 334 336 337 339 347 352 360 361 386'
  ).split(' '),
  CA: '204 226 236 249 250 289 306 343 403 416 418 438 450 506 514 519 579 581 587 604 613 647 705 709 778 780 807 819 867 902 905'.split(
    ' ',
  ),
}

// 555-0100 to 555-0199 of any area (ATIS-0300115)
function northAmerican(of: string[]): string {
  return `+1${of[randomInt(of.length)]}55501${digits(2)}`
}

function digits(count: number): string {
  return String(randomInt(10 ** count)).padStart(count, '0')
}
