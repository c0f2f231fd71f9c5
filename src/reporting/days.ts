import { createHash } from 'node:crypto'
import { day, hour, minute } from '../core/clock.ts'

/** What is reported: the mail in a domain's name (RFC 9990), or TLS with its servers (RFC 8460). */
export type Kind = 'dmarc' | 'tls'

/** What one report is about; `day` is a UTC day, `2026-11-20`. */
export interface ReportSubject {
  kind: Kind
  day: string
  domain: string
}

/** When reports begin to leave after the end of their day, and over what time they are spread; milliseconds. */
const wait = 15 * minute
const spread = 4 * hour

export function dayOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10)
}

/** When the report is due, in milliseconds since the Unix epoch: not all servers of the world report at midnight (RFC 8460 4.1). */
export function dueTime(subject: ReportSubject): number {
  return Date.parse(subject.day) + day + wait + (digest(subject).readUInt32BE(0) % spread)
}

/** The same whenever and to whomever the report is sent (RFC 9990 3.5.1). */
export function uniqueId(subject: ReportSubject, organization: string): string {
  return digest(subject, organization).toString('hex').slice(0, 16)
}

function digest({ kind, day: one, domain }: ReportSubject, salt = ''): Buffer {
  return createHash('sha256').update(`${kind} ${one} ${domain} ${salt}`).digest()
}
