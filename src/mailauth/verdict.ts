import { domainOf } from '../message/addresses.ts'
import { authenticationResults, oneLine } from './authentication-results.ts'
import {
  type Arc,
  askForKeys,
  checkPolicy,
  checkSignatures,
  checkSpf,
  type DmarcPolicy,
  type Signature,
  type Signed,
  type Spf,
} from './checks.ts'
import { Inquiry, type Lookup } from '../net/dns.ts'
import { type Author, authorOf, type Header, readHeader } from './author.ts'
import type { Address, Authentication, AuthResult, Envelope, PublishedPolicy, Verdict } from '../mail/model.ts'
import { doubledIn, severalOf } from './signed-fields.ts'
import { undecided } from './undecided.ts'

export interface VerdictSettings {
  /** Our name in Authentication-Results (RFC 8601 2.5). */
  hostname: string
  /** The strongest thing done about a DMARC failure; a sender's policy below it stands as it is. */
  dmarc: 'reject' | 'quarantine' | 'none'
  /** Milliseconds until whatever has no answer is a temperror. */
  deadline: number
  /** Domains whose ARC seals are believed (RFC 8617 7.2). */
  trusted_sealers: string[]
}

type Dmarc = Authentication['dmarc']

const noAuthor = 'no author: From is missing or cannot be read'
const ambiguous = 'the From field can be read in two ways'

/** Says what SPF, DKIM, DMARC and ARC make of a message, and what to do about it. Never rejects: trouble of ours reads as temperror. */
export async function judge(raw: Buffer, envelope: Envelope, lookup: Lookup, settings: VerdictSettings): Promise<Verdict> {
  const inquiry = new Inquiry(lookup, settings)
  try {
    return await weigh(raw, envelope, inquiry, settings)
  } catch (error) {
    return undecided(
      envelope,
      settings.hostname,
      `the checks did not finish: ${error instanceof Error ? error.message : 'unknown'}`,
    )
  } finally {
    inquiry.close()
  }
}

/**
 * Takes the DMARC result back when the author who is shown is of another domain than the one that was checked: two readers of one field must agree.
 * With no author the sender of the envelope is shown.
 */
export function confirm(verdict: Verdict, shown: Address | null, envelope: Envelope, settings: VerdictSettings): Verdict {
  const checked = verdict.authentication.dmarc
  if (checked.domain === null) return verdict
  const seen = shown?.address ?? (checked.result === 'pass' ? '' : envelope.mail_from)
  if (seen !== '' && domainOf(seen) === checked.domain) return verdict
  const dmarc: Dmarc = { ...checked, result: 'fail', aligned_by: [], reason: ambiguous }
  const { published } = verdict
  return conclude({ ...verdict.authentication, dmarc }, { vouched: null, published, doubled: null }, envelope, settings)
}

async function weigh(raw: Buffer, envelope: Envelope, inquiry: Inquiry, settings: VerdictSettings): Promise<Verdict> {
  const header = readHeader(raw)
  const author = authorOf(header)
  // The author's policy and the keys are asked for first, so that no slow sender can keep them from being read in time.
  const asked = author.address ?? addressInstead(author, envelope)
  const policy = asked === null ? null : checkPolicy(asked, [], [], inquiry)
  askForKeys(header, inquiry)
  const [spf, signed, alone] = await Promise.all([
    checkSpf(envelope, inquiry, settings.hostname),
    checkSignatures(raw, header, inquiry, settings.trusted_sealers),
    policy,
  ])
  const dmarc = await checkDmarc(author, header, alone, spf, signed, inquiry)
  const { result, chain, reason, vouched } = signed.arc
  const published = alone?.published ?? null
  const authentication: Authentication = { spf, dkim: signed.dkim, dmarc, arc: { result, chain, reason } }
  return conclude(authentication, { vouched, published, doubled: doubledIn(header.fields) }, envelope, settings)
}

function conclude(
  authentication: Authentication,
  { vouched, published, doubled }: { vouched: Arc['vouched']; published: PublishedPolicy | null; doubled: string | null },
  envelope: Envelope,
  settings: VerdictSettings,
): Verdict {
  const { dmarc } = authentication
  if (dmarc.result === 'fail' && vouched !== null) dmarc.reason = `overridden: ${vouched} saw a pass (ARC)`
  // The author is proved, and yet nobody can say what was written, as readers differ: nothing is vouched for, nor is anything refused.
  const ambiguity = doubled === null ? ambiguityOf(authentication) : severalOf(doubled)
  if (dmarc.result === 'pass' && ambiguity !== null) dmarc.reason = oneLine(`not verified: ${ambiguity}`)
  const action = dmarc.result === 'fail' && vouched === null ? actionOn(dmarc, settings.dmarc) : 'keep'
  const text = `This message fails DMARC, and ${oneLine(dmarc.domain ?? '')} asks receivers to reject such mail (RFC 9989)`
  return {
    authentication,
    verified_domain: dmarc.result === 'pass' && ambiguity === null ? dmarc.domain : null,
    action,
    reply: action === 'reject' ? { code: 550, enhanced: '5.7.26', text } : null,
    authentication_results: authenticationResults(settings.hostname, authentication, envelope),
    published,
    forwarder: dmarc.result === 'fail' ? vouched : null,
  }
}

/** Why what was written can be read in two ways, where signatures alone prove the author and all of them leave that open. */
function ambiguityOf({ dmarc, dkim }: Authentication): string | null {
  if (dmarc.aligned_by.includes('spf')) return null
  const aligned = dkim.filter((signature) => signature.aligned)
  return aligned.some(({ result }) => result === 'pass') ? null : (aligned[0]?.reason ?? null)
}

function actionOn(dmarc: Dmarc, strongest: VerdictSettings['dmarc']): Verdict['action'] {
  if (strongest === 'none') return 'keep'
  // RFC 9989 11.5: several authors, or one that reads in two ways, is suspect whatever the policy.
  const suspect = dmarc.reason !== noAuthor && (dmarc.policy === null || dmarc.reason === ambiguous)
  if (dmarc.policy === 'reject') return strongest === 'reject' ? 'reject' : 'spam'
  return dmarc.policy === 'quarantine' || suspect ? 'spam' : 'keep'
}

async function checkDmarc(
  author: Author,
  header: Header,
  alone: DmarcPolicy | null,
  spf: Spf,
  signed: Signed,
  inquiry: Inquiry,
): Promise<Dmarc> {
  const failed: Dmarc = { result: 'fail', domain: null, policy: null, aligned_by: [], reason: null }
  if (!header.complete) return { ...failed, reason: 'the header is too long' }
  if (author.address === null || alone === null) return { ...failed, ...withoutAuthor(author, alone, spf) }
  const passed = signed.dkim.filter((signature) => signature.result === 'pass' || signed.ambiguous.has(signature))
  const answer = await align(author.address, alone, sender(spf, 'pass'), domains(passed), inquiry)
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
  const open = [...passed, ...signed.dkim.filter(({ result }) => result === 'temperror')]
  if (dmarc.result !== 'fail' || (open.length === passed.length && spf.result !== 'temperror')) return dmarc
  // What could not be looked up might have passed: no one is refused for a DNS failure.
  const senders = [...sender(spf, 'pass'), ...sender(spf, 'temperror')]
  const hopeful = await checkPolicy(author.address, senders, domains(open), inquiry)
  if (hopeful.result === 'fail') return dmarc
  return { ...dmarc, result: 'temperror', reason: 'DNS failure: an aligned SPF or DKIM result is not known' }
}

/** Adds the domains that passed to what the author's policy alone came to. */
async function align(address: string, alone: DmarcPolicy, spf: string[], dkim: string[], inquiry: Inquiry): Promise<DmarcPolicy> {
  if (spf.length === 0 && dkim.length === 0) return alone
  const same = (domain: string) => domain === alone.domain
  if (alone.result === 'none') return { ...alone, spf: spf.some(same), aligned: new Set(dkim.filter(same)) }
  // The author's own domain is aligned in every mode; only other domains need the tree walked again.
  if (alone.result === 'fail' && spf.every(same) && dkim.every(same))
    return { ...alone, result: 'pass', spf: spf.length > 0, aligned: new Set(dkim) }
  return checkPolicy(address, spf, dkim, inquiry)
}

function sender(spf: Spf, result: AuthResult): string[] {
  return spf.result === result && spf.domain ? [spf.domain] : []
}

function domains(signatures: Signature[]): string[] {
  return signatures.map(({ domain }) => domain)
}

/** The address whose domain has the say when there is no author: one that From may be taken for, or the sender of the envelope, who is shown then. */
function addressInstead({ reason, resembles }: Author, { mail_from }: Envelope): string | null {
  if (resembles !== undefined) return `postmaster@${resembles}`
  return reason === 'no-author' && mail_from !== '' ? mail_from : null
}

function withoutAuthor({ reason }: Author, alone: DmarcPolicy | null, spf: Spf): Pick<Dmarc, 'domain' | 'policy' | 'reason'> {
  const { domain, policy } = alone ?? { domain: null, policy: null }
  if (reason === 'ambiguous-from') return { domain, policy, reason: ambiguous }
  if (reason !== 'no-author') return { domain: null, policy: null, reason }
  // A sender whom SPF knows, or might, is who is shown.
  const isForged = domain !== null && spf.result !== 'pass' && spf.result !== 'temperror'
  return { domain: isForged ? domain : null, policy: isForged ? policy : null, reason: noAuthor }
}
