import { invalid } from '../core/fault.ts'
import type { Caller } from '../core/scopes.ts'
import type { Database } from '../store/database.ts'
import { type DidResolver, oneAudience, type TokenJudge } from '../tokens/model.ts'
import { acquaintanceOf } from './acquaintance.ts'
import { asked, askedOtherwise, decided, type Finding, foreignScore, reportReasons, strangerScore } from './judgement.ts'
import type { Evaluation, Question } from './model.ts'
import type { TrustReports } from './reports.ts'
import type { Reputations } from './reputations.ts'
import { isOwn, type LocalSubject, type Subject, type Subjects } from './subjects.ts'

interface Deps {
  database: Database
  judge: TokenJudge
  resolver: DidResolver
  reports: TrustReports
  reputations: Reputations
  subjects: Subjects
}

type Shown = Evaluation['subject']

const nobody: Shown = { did: null, handle: null, identity_id: null, email: null, proven: false }
const none = { positive: 0, negative: 0, disputed: 0 }
const names = ['token', 'did', 'handle', 'identity_id', 'email'] as const
const unproven = 'The subject is not authenticated: to authenticate it, request an identity token from it and evaluate that.'

/** Answers whether a subject can be trusted with an action, and why. An untrustworthy subject is a result; Faults are for malformed requests. */
export async function evaluate(deps: Deps, caller: Caller, question: Question): Promise<Evaluation> {
  requireOne(question)
  const { token, action, min_score } = question
  const min = min_score ?? (action === undefined ? askedOtherwise : asked[action])
  const { subject, finding } =
    token === undefined ? await byName(deps, caller, question) : await byToken(deps, caller, token, oneAudience(question))
  return { min_score: min, subject, ...decided(finding, min) }
}

async function byToken(deps: Deps, caller: Caller, token: string, audience: string | undefined): Promise<Answer> {
  const { judge, subjects, reports } = deps
  const verdict = await judge(caller.account_id, token, audience)
  if (!verdict.valid) return { subject: nobody, finding: refused(`The token is not valid. ${verdict.message}`) }
  const { claims, identityId } = verdict
  if (identityId !== null) return byIdentity(deps, caller, await subjects.proven(identityId), true)
  const [sub, box] = [String(claims['sub']), String(claims['iss'])]
  const did = sub.startsWith('did:') ? sub : null
  const said = did === null ? none : await reports.about(did)
  const claimed = claimOf(claims['reputation'])
  const reasons = [
    `The token is valid: ${box} authenticates ${sub}, and nothing else in the message.`,
    claimed === null
      ? `${box} states no reputation for it.`
      : `${box} gives it ${claimed}: a good score given by a box to its own agent counts little, a bad one fully.`,
    ...reportReasons(said),
  ]
  // address and handle are claims of the other box alone
  return { subject: { ...nobody, did, proven: true }, finding: { score: foreignScore(claimed, said), best: 'allow', reasons } }
}

async function byName(deps: Deps, caller: Caller, question: Question): Promise<Answer> {
  const subject = await deps.subjects.asked(caller, question)
  if (subject.kind === 'unknown' || subject.kind === 'local') return byIdentity(deps, caller, subject, false)
  const reports = await deps.reports.about(subject.name, subject.kind === 'email' ? subject.account_id : null)
  if (subject.kind === 'email') return byAddress(deps, caller, subject.name, reports)
  const shown = { ...nobody, did: subject.name }
  const { state, message } = await deps.resolver(caller.account_id, subject.name)
  if (state === 'nobody') return { subject: shown, finding: refused(message) }
  const reasons = [message, ...reportReasons(reports), unproven]
  return { subject: shown, finding: { score: foreignScore(null, reports), best: 'review', reasons } }
}

async function byIdentity(deps: Deps, caller: Caller, subject: Subject, proven: boolean): Promise<Answer> {
  if (subject.kind !== 'local') return { subject: nobody, finding: refused('There is no such subject on this box.') }
  const shown = shownAs(caller, subject, proven)
  if (subject.suspended) return { subject: shown, finding: refused('The identity is suspended.') }
  const { score, components } = await deps.reputations.of(subject.identity_id)
  const of = (sign: number): string =>
    components
      .filter(({ effect }) => effect * sign > 0)
      .map(({ name }) => name.replaceAll('_', ' '))
      .join(', ')
  const reasons = [
    proven ? 'The token is valid: the subject is authenticated.' : unproven,
    ...(of(1) === '' ? ['There is nothing in its favour yet.'] : [`In its favour: ${of(1)}.`]),
    ...(of(-1) === '' ? [] : [`Against it: ${of(-1)}.`]),
  ]
  return { subject: shown, finding: { score, best: 'allow', reasons } }
}

async function byAddress(
  deps: Deps,
  caller: Caller,
  email: string,
  reports: Parameters<typeof reportReasons>[0],
): Promise<Answer> {
  const { proven, suppressed } = await acquaintanceOf(deps.database, caller, email)
  const messageCount = typeof proven === 'number' ? proven : 0
  const known = messageCount > 0
  const reasons = [
    typeof proven === 'string'
      ? unread[proven]
      : known
        ? 'It has written to you before, authenticated by its domain (DMARC).'
        : 'It has never written to you authenticated by its domain (DMARC).',
    ...(suppressed === undefined ? [] : [suppressions[suppressed]]),
    ...reportReasons(reports),
    'Trust a message of this address only if its verified_domain is the domain of the address.',
  ]
  const best = known && suppressed === undefined ? 'allow' : 'review'
  return { subject: { ...nobody, email }, finding: { score: strangerScore(messageCount, reports), best, reasons } }
}

interface Answer {
  subject: Shown
  finding: Finding
}

const unread = {
  not_allowed: 'Mail was not considered: the key may not read it.',
  too_slow: 'There is too much mail to search in time: it is unknown whether it has written to you.',
}

const suppressions = {
  manual: 'Your account has suppressed this address.',
  bounce: 'Your account has suppressed this address: mail to it bounced.',
  complaint: 'Your account has suppressed this address: it reported your mail as spam.',
}

function requireOne(question: Question): void {
  const given = names.filter((name) => question[name] !== undefined)
  if (given.length !== 1) {
    throw invalid(
      given[1] ?? 'token',
      `Send exactly one of ${names.join(', ')}; ${given.length === 0 ? 'none is' : `${given.join(' and ')} are`} here.`,
    )
  }
  const [spelled] = (['audience', 'aud'] as const).filter((name) => question[name] !== undefined)
  if (spelled !== undefined && question.token === undefined) throw invalid(spelled, `${spelled} is allowed only with token.`)
}

function refused(why: string): Finding {
  return { score: 0, best: 'deny', reasons: [why] }
}

function shownAs(caller: Caller, subject: LocalSubject, proven: boolean): Shown {
  const { agent, identity_id, email } = subject
  return {
    did: agent?.did ?? null,
    handle: agent?.handle ?? null,
    identity_id: isOwn(caller, subject) ? identity_id : null,
    email: isOwn(caller, subject) || agent !== null ? email : null,
    proven,
  }
}

/** The score that a box claims, as a number or in an object; null for anything else. */
function claimOf(value: unknown): number | null {
  const score = typeof value === 'object' && value !== null ? (value as { score?: unknown }).score : value
  return typeof score === 'number' && score >= 0 && score <= 1 ? score : null
}
