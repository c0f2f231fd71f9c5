import { domainOf } from '../message/addresses.ts'
import { authenticationResults, oneLine } from './authentication-results.ts'
import {
  type Arc,
  prefetchKeys,
  checkPolicy,
  checkSignatures,
  checkSpf,
  type DmarcPolicy,
  type Signature,
  type SignatureResults,
  type Spf,
} from './checks.ts'
import { Inquiry, type Lookup } from '../net/dns.ts'
import { type Author, authorOf, type Header, readHeader } from './author.ts'
import type { Address, Authentication, AuthResult, Envelope, PublishedPolicy, Verdict } from '../mail/model.ts'
import { duplicateBodyField, duplicateReason } from './signed-fields.ts'
import { uncheckedVerdict } from './unchecked.ts'

export interface VerdictSettings {
  /** Our name in Authentication-Results (RFC 8601 2.5). */
  hostname: string
  /** The strongest action on a DMARC failure. A weaker policy of the sender applies as it is. */
  dmarc: 'reject' | 'quarantine' | 'none'
  /** Milliseconds after which checks without an answer are a temperror. */
  deadline: number
  /** Domains whose ARC seals are trusted (RFC 8617 7.2). */
  trusted_sealers: string[]
}

type Dmarc = Authentication['dmarc']

/** The maximum number of lookups for the SPF result of one message. */
const maxSpfLookups = 50

const noAuthor = 'no author: From is missing or cannot be read'
const ambiguous = 'the From field is ambiguous'

/** Checks SPF, DKIM, DMARC and ARC of a message, and decides on an action. Never rejects: internal errors become temperror. */
export async function checkMessage(raw: Buffer, envelope: Envelope, lookup: Lookup, settings: VerdictSettings): Promise<Verdict> {
  const inquiry = new Inquiry(lookup, settings)
  // RFC 7208 4.6.4: what the sender's record takes is not taken from the author's policy and from keys, which need forty at most
  const spfInquiry = new Inquiry(lookup, { ...settings, limit: maxSpfLookups })
  try {
    return await runChecks(raw, envelope, { inquiry, spfInquiry }, settings)
  } catch (error) {
    return uncheckedVerdict(
      envelope,
      settings.hostname,
      `the checks did not finish: ${error instanceof Error ? error.message : 'unknown'}`,
    )
  } finally {
    inquiry.close()
    spfInquiry.close()
  }
}

/**
 * Revokes the DMARC result when the displayed author has another domain than the checked one: both parsers of From must agree. Without an author
 * the envelope sender is displayed.
 */
export function confirmAuthor(verdict: Verdict, shown: Address | null, envelope: Envelope, settings: VerdictSettings): Verdict {
  const checked = verdict.authentication.dmarc
  if (checked.domain === null) return verdict
  const displayed = shown?.address ?? (checked.result === 'pass' ? '' : envelope.mail_from)
  if (displayed !== '' && domainOf(displayed) === checked.domain) return verdict
  const dmarc: Dmarc = { ...checked, result: 'fail', aligned_by: [], reason: ambiguous }
  const { published } = verdict
  return decide(
    { ...verdict.authentication, dmarc },
    { trustedSealer: null, published, duplicateField: null },
    envelope,
    settings,
  )
}

async function runChecks(
  raw: Buffer,
  envelope: Envelope,
  { inquiry, spfInquiry }: { inquiry: Inquiry; spfInquiry: Inquiry },
  settings: VerdictSettings,
): Promise<Verdict> {
  const header = readHeader(raw)
  const author = authorOf(header)
  // The policy of the author and the keys are looked up first, so that slow SPF lookups cannot delay them beyond the deadline.
  const policyAddress = author.address ?? fallbackAddress(author, envelope)
  const policy = policyAddress === null ? null : checkPolicy(policyAddress, [], [], inquiry)
  prefetchKeys(header, inquiry)
  const [spf, signed, authorPolicy] = await Promise.all([
    checkSpf(envelope, spfInquiry, settings.hostname),
    checkSignatures(raw, header, inquiry, settings.trusted_sealers),
    policy,
  ])
  const dmarc = await checkDmarc(author, header, authorPolicy, spf, signed, inquiry)
  const { result, chain, reason, trustedSealer } = signed.arc
  const published = authorPolicy?.published ?? null
  const authentication: Authentication = { spf, dkim: signed.dkim, dmarc, arc: { result, chain, reason } }
  return decide(
    authentication,
    { trustedSealer, published, duplicateField: duplicateBodyField(header.fields) },
    envelope,
    settings,
  )
}

function decide(
  authentication: Authentication,
  {
    trustedSealer,
    published,
    duplicateField,
  }: { trustedSealer: Arc['trustedSealer']; published: PublishedPolicy | null; duplicateField: string | null },
  envelope: Envelope,
  settings: VerdictSettings,
): Verdict {
  const { dmarc } = authentication
  if (dmarc.result === 'fail' && trustedSealer !== null) dmarc.reason = `overridden: ${trustedSealer} saw a pass (ARC)`
  // The author is proved, but the content is ambiguous: the domain is not verified, and the message is not refused.
  const ambiguity = duplicateField === null ? ambiguityOf(authentication) : duplicateReason(duplicateField)
  if (dmarc.result === 'pass' && ambiguity !== null) dmarc.reason = oneLine(`not verified: ${ambiguity}`)
  const action = dmarc.result === 'fail' && trustedSealer === null ? actionOn(dmarc, settings.dmarc) : 'keep'
  const text = `This message fails DMARC, and ${oneLine(dmarc.domain ?? '')} asks receivers to reject such mail (RFC 9989)`
  return {
    authentication,
    verified_domain: dmarc.result === 'pass' && ambiguity === null ? dmarc.domain : null,
    action,
    reply: action === 'reject' ? { code: 550, enhanced: '5.7.26', text } : null,
    authentication_results: authenticationResults(settings.hostname, authentication, envelope),
    published,
    forwarder: dmarc.result === 'fail' ? trustedSealer : null,
  }
}

/** Why the content is ambiguous, when only signatures prove the author and all aligned ones are ambiguous. */
function ambiguityOf({ dmarc, dkim }: Authentication): string | null {
  if (dmarc.aligned_by.includes('spf')) return null
  const aligned = dkim.filter((signature) => signature.aligned)
  return aligned.some(({ result }) => result === 'pass') ? null : (aligned[0]?.reason ?? null)
}

function actionOn(dmarc: Dmarc, maximum: VerdictSettings['dmarc']): Verdict['action'] {
  if (maximum === 'none') return 'keep'
  // RFC 9989 11.5: several authors, or an ambiguous one, are suspect whatever the policy.
  const suspect = dmarc.reason !== noAuthor && (dmarc.policy === null || dmarc.reason === ambiguous)
  if (dmarc.policy === 'reject') return maximum === 'reject' ? 'reject' : 'spam'
  return dmarc.policy === 'quarantine' || suspect ? 'spam' : 'keep'
}

async function checkDmarc(
  author: Author,
  header: Header,
  authorPolicy: DmarcPolicy | null,
  spf: Spf,
  signed: SignatureResults,
  inquiry: Inquiry,
): Promise<Dmarc> {
  const failed: Dmarc = { result: 'fail', domain: null, policy: null, aligned_by: [], reason: null }
  if (!header.complete) return { ...failed, reason: 'the header is too long' }
  if (author.address === null || authorPolicy === null) return { ...failed, ...withoutAuthor(author, authorPolicy, spf) }
  const passed = signed.dkim.filter((signature) => signature.result === 'pass' || signed.ambiguous.has(signature))
  const answer = await align(author.address, authorPolicy, sender(spf, 'pass'), domains(passed), inquiry)
  const { domain, policy } = answer
  if (signed.authors && (signed.authors.length !== 1 || domainOf(signed.authors[0] ?? '') !== domainOf(author.address)))
    return { ...failed, domain, policy, reason: ambiguous }
  for (const signature of passed) signature.aligned = answer.aligned.has(signature.domain)
  const dmarc: Dmarc = {
    result: answer.result,
    domain,
    policy,
    aligned_by: [...(answer.spf ? ['spf' as const] : []), ...(passed.some(({ aligned }) => aligned) ? ['dkim' as const] : [])],
    reason: answer.reason ? oneLine(answer.reason) : null,
  }
  const undetermined = [...passed, ...signed.dkim.filter(({ result }) => result === 'temperror')]
  if (dmarc.result !== 'fail' || (undetermined.length === passed.length && spf.result !== 'temperror')) return dmarc
  // A failed lookup might have passed: a DNS failure is no reason to refuse.
  const senders = [...sender(spf, 'pass'), ...sender(spf, 'temperror')]
  const bestCase = await checkPolicy(author.address, senders, domains(undetermined), inquiry)
  if (bestCase.result === 'fail') return dmarc
  return { ...dmarc, result: 'temperror', reason: 'DNS failure: an aligned SPF or DKIM result is not known' }
}

/** Combines the result of the policy lookup with the domains that passed SPF and DKIM. */
async function align(
  address: string,
  authorPolicy: DmarcPolicy,
  spf: string[],
  dkim: string[],
  inquiry: Inquiry,
): Promise<DmarcPolicy> {
  if (spf.length === 0 && dkim.length === 0) return authorPolicy
  const same = (domain: string) => domain === authorPolicy.domain
  if (authorPolicy.result === 'none') return { ...authorPolicy, spf: spf.some(same), aligned: new Set(dkim.filter(same)) }
  // The author's own domain is aligned in every mode; only other domains need another tree walk.
  if (authorPolicy.result === 'fail' && spf.every(same) && dkim.every(same))
    return { ...authorPolicy, result: 'pass', spf: spf.length > 0, aligned: new Set(dkim) }
  return checkPolicy(address, spf, dkim, inquiry)
}

function sender(spf: Spf, result: AuthResult): string[] {
  return spf.result === result && spf.domain ? [spf.domain] : []
}

function domains(signatures: Signature[]): string[] {
  return signatures.map(({ domain }) => domain)
}

/** The address whose policy applies when there is no author: a domain that From resembles, or the envelope sender, which is displayed then. */
function fallbackAddress({ reason, resembles }: Author, { mail_from }: Envelope): string | null {
  if (resembles !== undefined) return `postmaster@${resembles}`
  return reason === 'no-author' && mail_from !== '' ? mail_from : null
}

function withoutAuthor(
  { reason }: Author,
  authorPolicy: DmarcPolicy | null,
  spf: Spf,
): Pick<Dmarc, 'domain' | 'policy' | 'reason'> {
  const { domain, policy } = authorPolicy ?? { domain: null, policy: null }
  if (reason === 'ambiguous-from') return { domain, policy, reason: ambiguous }
  if (reason !== 'no-author') return { domain: null, policy: null, reason }
  // A sender that SPF confirms, or might, is not forged.
  const isForged = domain !== null && spf.result !== 'pass' && spf.result !== 'temperror'
  return { domain: isForged ? domain : null, policy: isForged ? policy : null, reason: noAuthor }
}
