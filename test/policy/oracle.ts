/** A policy as docs/policy.md describes it, read anew: no code of the box is used here. */
export interface Plain {
  preset: 'open' | 'known' | 'all'
  rules: PlainRule[]
}

export type Outcome = 'send' | 'hold' | 'refuse'

type Finding = 'secret' | 'key' | 'card' | 'code' | 'unread'

export interface PlainRule {
  when: {
    channel?: ('email' | 'sms' | 'card' | 'login')[]
    to?: string[]
    reply?: 'verified'
    attachments?: boolean
    links?: boolean
    found?: Finding[]
    recipients_over?: number
    new_per_day_over?: number
    amount_over?: number
  }
  action: Outcome
}

/** What is true of something that is to leave. */
export interface Facts {
  channel: 'email' | 'sms' | 'card' | 'login'
  recipients: { address: string; sort: 'own' | 'known' | 'new' }[]
  /** Whose verified message it answers. */
  answered: string | null
  attachments: boolean
  links: boolean
  /** Null where it could not be scanned. */
  found: readonly Finding[] | null
  newToday: number
  amount: number | null
  /** Of a login: a person approved one for its place before. */
  isKnownPlace: boolean
}

const strictness: Outcome[] = ['send', 'hold', 'refuse']

/** The strictest of what each policy says for each recipient. */
export function outcomeOf(policies: Plain[], facts: Facts): Outcome {
  const { recipients } = facts
  const each = recipients.length > 0 ? recipients : [undefined]
  const all = policies.flatMap((policy) => each.map((recipient) => forOne(policy, facts, recipient)))
  return strictness.findLast((one) => all.includes(one))!
}

function forOne({ preset, rules }: Plain, facts: Facts, recipient?: Facts['recipients'][number]): Outcome {
  for (const { when, action } of rules) {
    const conditions: [isGiven: boolean, holds: boolean][] = [
      [when.channel !== undefined, when.channel?.includes(facts.channel) ?? false],
      [when.to !== undefined, recipient !== undefined && (when.to ?? []).some((entry) => names(entry, recipient))],
      [when.reply !== undefined, recipient !== undefined && recipient.address === facts.answered],
      [when.attachments !== undefined, when.attachments === facts.attachments],
      [when.links !== undefined, when.links === facts.links],
      [when.recipients_over !== undefined, facts.recipients.length > when.recipients_over!],
      [when.new_per_day_over !== undefined, facts.newToday > when.new_per_day_over!],
      [when.amount_over !== undefined, facts.amount !== null && facts.amount > when.amount_over!],
      [when.found !== undefined, facts.channel !== 'card' && facts.channel !== 'login'],
    ]
    if (!conditions.every(([isGiven, holds]) => !isGiven || holds)) continue
    if (when.found === undefined) return action
    // what cannot be scanned is held, if it is not refused
    if (facts.found === null) return action === 'refuse' ? 'refuse' : 'hold'
    if (when.found.some((one) => facts.found!.includes(one))) return action
  }
  if (preset === 'open') return 'send'
  if (preset === 'all') return 'hold'
  if (facts.channel === 'login') return facts.isKnownPlace ? 'send' : 'hold'
  return recipient !== undefined && recipient.sort !== 'new' ? 'send' : 'hold'
}

function names(entry: string, { address, sort }: Facts['recipients'][number]): boolean {
  if (entry === sort || entry === address) return true
  return entry.startsWith('@') && address.slice(address.indexOf('@')) === entry
}
