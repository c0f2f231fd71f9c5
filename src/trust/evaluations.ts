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
const unproven = 'Nothing proves that it is they who speak: for that, ask them for an identity token and evaluate it.'

/** Answers whether a subject can be trusted with an action, and why. */
export class Evaluations {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** An untrustworthy subject is a result; Faults are for malformed requests. */
  async answer(caller: Caller, question: Question, signal: AbortSignal): Promise<Evaluation> {
    requireOne(question)
    const { token, action, min_score } = question
    const min = min_score ?? (action === undefined ? askedOtherwise : asked[action])
    const { subject, finding } =
      token === undefined ? await this.#named(caller, question) : await this.#spoken(caller, token, oneAudience(question), signal)
    return { min_score: min, subject, ...decided(finding, min) }
  }

  async #spoken(caller: Caller, token: string, audience: string | undefined, signal: AbortSignal): Promise<Answer> {
    const { judge, subjects, reports } = this.#deps
    const verdict = await judge.judge(token, audience, signal)
    if (!verdict.valid) return { subject: nobody, finding: refused(`The token proves nothing. ${verdict.message}`) }
    const { claims, identityId } = verdict
    if (identityId !== null) return this.#known(caller, await subjects.proven(identityId), true)
    const [sub, box] = [String(claims['sub']), String(claims['iss'])]
    const did = sub.startsWith('did:') ? sub : null
    const said = did === null ? none : await reports.about(did)
    const claimed = claimOf(claims['reputation'])
    const reasons = [
      `The token is good: ${box} vouches that it is ${sub} who speaks, and for nothing else it says.`,
      claimed === null
        ? `${box} says nothing of its reputation.`
        : `${box} gives it ${claimed}: what a box says of its own counts little where it is good, and fully where it is bad.`,
      ...reportReasons(said),
    ]
    // address and handle are claims of the other box alone
    return { subject: { ...nobody, did, proven: true }, finding: { score: foreignScore(claimed, said), best: 'allow', reasons } }
  }

  async #named(caller: Caller, question: Question): Promise<Answer> {
    const subject = await this.#deps.subjects.asked(caller, question)
    if (subject.kind === 'unknown' || subject.kind === 'local') return this.#known(caller, subject, false)
    const reports = await this.#deps.reports.about(subject.name, subject.kind === 'email' ? subject.account_id : null)
    if (subject.kind === 'email') return this.#stranger(caller, subject.name, reports)
    const shown = { ...nobody, did: subject.name }
    const { state, message } = await this.#deps.resolver.resolve(subject.name)
    if (state === 'nobody') return { subject: shown, finding: refused(message) }
    const reasons = [message, ...reportReasons(reports), unproven]
    return { subject: shown, finding: { score: foreignScore(null, reports), best: 'review', reasons } }
  }

  async #known(caller: Caller, subject: Subject, proven: boolean): Promise<Answer> {
    if (subject.kind !== 'local') return { subject: nobody, finding: refused('There is no such subject on this box.') }
    const shown = shownAs(caller, subject, proven)
    if (subject.suspended) return { subject: shown, finding: refused('The identity is suspended.') }
    const { score, components } = await this.#deps.reputations.of(subject.identity_id)
    const of = (sign: number): string =>
      components
        .filter(({ effect }) => effect * sign > 0)
        .map(({ name }) => name.replaceAll('_', ' '))
        .join(', ')
    const reasons = [
      proven ? 'The token is good: it is they who speak.' : unproven,
      ...(of(1) === '' ? ['Nothing speaks for it yet.'] : [`For it speak: ${of(1)}.`]),
      ...(of(-1) === '' ? [] : [`Against it speak: ${of(-1)}.`]),
    ]
    return { subject: shown, finding: { score, best: 'allow', reasons } }
  }

  async #stranger(caller: Caller, email: string, reports: Parameters<typeof reportReasons>[0]): Promise<Answer> {
    const { proven, suppressed } = await acquaintanceOf(this.#deps.database, caller, email)
    const messageCount = typeof proven === 'number' ? proven : 0
    const known = messageCount > 0
    const reasons = [
      typeof proven === 'string'
        ? unread[proven]
        : known
          ? 'It has written to you before, and its domain vouched for that (DMARC).'
          : 'It has never written to you in a way that its domain vouched for (DMARC).',
      ...(suppressed === undefined ? [] : [suppressions[suppressed]]),
      ...reportReasons(reports),
      'Trust a message of this address only where its verified_domain is that of the address.',
    ]
    const best = known && suppressed === undefined ? 'allow' : 'review'
    return { subject: { ...nobody, email }, finding: { score: strangerScore(messageCount, reports), best, reasons } }
  }
}

interface Answer {
  subject: Shown
  finding: Finding
}

const unread = {
  not_allowed: 'Mail was not looked at: the key may not read it.',
  too_slow: 'There is too much mail to look through in time: whether it has written to you is not known.',
}

const suppressions = {
  manual: 'Your account writes to it no more.',
  bounce: 'Your account does not write to it: mail to this address bounced.',
  complaint: 'Your account writes to it no more: it called your mail spam.',
}

function requireOne(question: Question): void {
  const given = names.filter((name) => question[name] !== undefined)
  if (given.length !== 1) {
    throw invalid(
      given[1] ?? 'token',
      `Give exactly one of ${names.join(', ')}; ${given.length === 0 ? 'none is' : `${given.join(' and ')} are`} here.`,
    )
  }
  const [spelled] = (['audience', 'aud'] as const).filter((name) => question[name] !== undefined)
  if (spelled !== undefined && question.token === undefined) throw invalid(spelled, `${spelled} goes with token only.`)
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
