import { createHash } from 'node:crypto'
import type { DomainSettings } from './settings.ts'

const day = 86_400

/** The MTA-STS policy of our domains (RFC 8461 3.2). */
export function policyText({ hostname, mta_sts }: DomainSettings): string {
  // what is being tried, or taken back, is not to be remembered for long
  const age = mta_sts === 'enforce' ? 14 * day : day
  return ['version: STSv1', `mode: ${mta_sts}`, `mx: ${hostname}`, `max_age: ${age}`, ''].join('\r\n')
}

/** What the `id` of the TXT record says: another with every other policy (RFC 8461 3.1). */
export function policyId(settings: DomainSettings): string {
  return createHash('sha256').update(policyText(settings)).digest('hex').slice(0, 20)
}
