import type { Envelope } from '../../../src/mail/model.ts'
import type { Random } from '../../support/random.ts'
import type { Zone } from './zone.ts'

/** A message and the DNS that it is judged by. */
export interface Try {
  /** What of it was made unusual. */
  kind: 'spf' | 'dkim' | 'arc' | 'dmarc'
  raw: Buffer
  zone: Zone
  /** The author's domain where From is plain. */
  author: string | null
  envelope: Envelope
}

/** A try as it is made: of the envelope what differs from any other. */
export type NewTry = Omit<Try, 'envelope'> & { envelope?: Partial<Envelope> }

/** True once in so many times. */
export function oneIn(times: number, random: Random): boolean {
  return random(times) === 0
}

/** Replaces a few characters somewhere. */
export function splice(text: string, random: Random, inserted: string): string {
  const at = random(text.length + 1)
  return text.slice(0, at) + inserted + text.slice(at + random(4))
}
