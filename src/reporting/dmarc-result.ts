import type { Authentication, Envelope, PublishedPolicy, Verdict } from '../mail/model.ts'
import type { Result } from './counts.ts'

/** Why the disposition differs from the policy (RFC 9990 3.1.6). */
type OverrideType = 'local_policy' | 'policy_test_mode' | 'trusted_forwarder'

/** One row of an aggregate report without its count (RFC 9990 3.1.1.8). */
export interface DmarcRecord {
  source_ip: string
  disposition: 'none' | 'pass' | 'quarantine' | 'reject'
  dkim: 'pass' | 'fail'
  spf: 'pass' | 'fail'
  override: { type: OverrideType; comment: string | null } | null
  header_from: string
  /** Empty for the null sender. */
  envelope_from: string
  dkim_results: { domain: string; selector: string; result: string }[]
  spf_result: { domain: string; result: string } | null
}

/** The most signatures in one row (RFC 9990 3.1.3), and the longest name in characters. */
const maxSignatures = 4
const longestName = 253

/** The counted part of a verdict; undefined when the domain requests no reports, or a DNS error left the result open. */
export function dmarcResult(envelope: Envelope, verdict: Verdict): Result | undefined {
  const { published, authentication } = verdict
  const { dmarc, spf } = authentication
  if (!published || dmarc.domain === null || (dmarc.result !== 'pass' && dmarc.result !== 'fail')) return undefined
  const record: DmarcRecord = {
    source_ip: envelope.remote_address,
    ...dispositionOf(verdict, published, dmarc.domain),
    dkim: dmarc.aligned_by.includes('dkim') ? 'pass' : 'fail',
    spf: dmarc.aligned_by.includes('spf') ? 'pass' : 'fail',
    header_from: name(dmarc.domain),
    envelope_from: name(envelope.mail_from.slice(envelope.mail_from.lastIndexOf('@') + 1)),
    dkim_results: signaturesOf(authentication.dkim),
    spf_result: spf.domain === null ? null : { domain: name(spf.domain), result: spf.result },
  }
  return { kind: 'dmarc', domain: published.domain, policy: published, record }
}

function dispositionOf(
  { action, forwarder, authentication: { dmarc } }: Verdict,
  published: PublishedPolicy,
  from: string,
): Pick<DmarcRecord, 'disposition' | 'override'> {
  const asked = from === published.domain ? published.p : published.sp
  if (dmarc.result === 'pass') return { disposition: asked === 'none' ? 'none' : 'pass', override: null }
  const disposition = ({ keep: 'none', spam: 'quarantine', reject: 'reject' } as const)[action]
  if (disposition === asked) return { disposition, override: null }
  if (forwarder !== null)
    return { disposition, override: { type: 'trusted_forwarder', comment: `arc=pass by ${name(forwarder)}` } }
  // a missing subdomain has another policy (np), and a domain in testing a weaker one
  if (disposition === dmarc.policy) {
    return { disposition, override: published.testing ? { type: 'policy_test_mode', comment: null } : null }
  }
  return { disposition, override: { type: 'local_policy', comment: null } }
}

function rank({ result, aligned }: Authentication['dkim'][number]): number {
  if (result !== 'pass') return 2
  return aligned ? 0 : 1
}

/** The most relevant signatures first. */
function signaturesOf(signatures: Authentication['dkim']): DmarcRecord['dkim_results'] {
  return signatures
    .toSorted((one, other) => rank(one) - rank(other))
    .slice(0, maxSignatures)
    .map(({ domain, selector, result }) => ({ domain: name(domain), selector: name(selector), result }))
}

function name(text: string): string {
  return text.slice(0, longestName).toLowerCase()
}
