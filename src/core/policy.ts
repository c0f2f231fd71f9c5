import { isIP } from 'node:net'
import * as z from 'zod'
import { entryOf } from './address-list.ts'
import { hasKnownTopLevel } from './domain-names.ts'
import { type Fault, invalid } from './fault.ts'

/** What becomes of a message or a reveal; the later the stricter. */
export const actions = ['send', 'hold', 'refuse'] as const
export type Action = (typeof actions)[number]

export const channels = ['email', 'sms', 'card', 'login'] as const
export type Channel = (typeof channels)[number]

/** What a scan of an outgoing message finds; `unread` is an attachment that is no text. */
export const findings = ['secret', 'key', 'card', 'code', 'unread'] as const
export type Finding = (typeof findings)[number]

export const maxRules = 100

/** Sorts of recipients, in `to` beside addresses, domains and numbers. */
const sorts = ['own', 'known', 'new'] as const
export type Sort = (typeof sorts)[number]

const When = z
  .strictObject({
    channel: z.array(z.enum(channels)).min(1).optional().meta({ description: 'all if left out' }),
    to: z.array(z.string().trim().min(2).max(320)).min(1).max(100).optional().meta({
      description:
        'own (an address or number of the same account), known (wrote to the identity before, verified by DMARC; or a person approved a message to it), new (neither), @example.net, ada@example.net, or +15550100123',
    }),
    reply: z
      .literal('verified')
      .optional()
      .meta({ description: 'the message answers one of this recipient, whom DMARC verified' }),
    attachments: z.boolean().optional().meta({ description: 'whether there are any' }),
    links: z.boolean().optional().meta({ description: 'whether there are any' }),
    found: z.array(z.enum(findings)).min(1).optional().meta({
      description:
        'any of these is in the text, the subject or an attachment of text: secret (a known form of key or token, or random characters), key (an API key of a box), card (a card number by its check digit), code (a one-time code); unread: an attachment that is no text. What cannot be scanned is held',
    }),
    recipients_over: z.int().min(0).max(100).optional(),
    new_per_day_over: z.int().min(0).max(100_000).optional().meta({
      description: 'with this message, the identity writes to more recipients than this that were new within 24 hours',
    }),
    amount_over: z.int().min(0).optional().meta({ description: 'of a card, in cents; a reveal without an amount is over any' }),
  })
  .meta({ id: 'PolicyCondition', description: 'all that is given must hold; an empty one always does' })
type When = z.output<typeof When>

export const Rule = z.strictObject({ when: When, action: z.enum(actions) }).meta({ id: 'PolicyRule' })
export type Rule = z.output<typeof Rule>

export const presets = ['open', 'known', 'all'] as const

export const Policy = z.strictObject({
  preset: z.enum(presets).meta({
    description:
      'for what no rule matches: open sends all; known sends to own and known recipients and holds the rest, each card, and the first reveal of a login of each place; all holds everything',
  }),
  rules: z
    .array(Rule)
    .max(maxRules)
    .meta({ description: 'the first that matches a recipient decides; of several recipients, the strictest' }),
})
export type Policy = z.output<typeof Policy>

export const openPolicy: Policy = { preset: 'open', rules: [] }

/** One to whom a message goes. A card has none, nor has a login. */
export interface Recipient {
  address: string
  /** Other addresses of the same mailbox of this box, for rules for one address. */
  aliases?: readonly string[]
  sort: Sort
  /** The message answers one of theirs, and DMARC verified them. */
  isAnswered: boolean
}

/** What is about to leave, as rules see it. */
export interface Departure {
  channel: Channel
  recipients: readonly Recipient[]
  /** Null where it is not known, as the message could not be read whole; of the links too. */
  hasAttachments: boolean | null
  hasLinks: boolean | null
  /** Null when the scan failed, or was not made. */
  found: ReadonlySet<Finding> | null
  /** Recipients that were new within 24 hours, these included. */
  newToday: number
  /** Of a card, in cents; null without one. */
  amount: number | null
  /** Of a login: a person approved a reveal for its place before. */
  isKnownPlace?: boolean
}

/** Which rule decided, and for whom. */
export interface Reason {
  action: Action
  /** Its place among the rules; null for the preset. */
  rule: number | null
  recipient: string | null
  /** The rule looks at what is in the message, which could not be read whole. */
  unscanned?: true
}

/** What a policy says of a departure: the strictest of what it says of each recipient. */
export function judge(policy: Policy, departure: Departure): Reason {
  const each = departure.recipients.length === 0 ? [null] : departure.recipients
  let strictest: Reason | undefined
  for (const recipient of each) {
    const reason = reasonFor(policy, departure, recipient)
    if (!strictest || rank(reason.action) > rank(strictest.action)) strictest = reason
  }
  return strictest!
}

/** The rank of an action; the higher the stricter. */
export function rank(action: Action): number {
  return actions.indexOf(action)
}

/** True if a policy looks at what a scan finds, or for attachments or links. */
export function scans({ rules }: Policy): boolean {
  return rules.some(({ when }) => when.found !== undefined || when.attachments !== undefined || when.links !== undefined)
}

/** True if a policy has a rule for one address. */
export function namesAddress({ rules }: Policy): boolean {
  return rules.some(({ when }) => when.to?.some((entry) => entry.indexOf('@') > 0) === true)
}

/** True if a policy sends everything. */
export function isOpen({ preset, rules }: Policy): boolean {
  return preset === 'open' && rules.every(({ action }) => action === 'send')
}

function reasonFor({ preset, rules }: Policy, departure: Departure, recipient: Recipient | null): Reason {
  const address = recipient?.address ?? null
  for (const [rule, { when, action }] of rules.entries()) {
    if (!fits(when, departure, recipient)) continue
    if (isUnknown(when, departure))
      return { action: action === 'refuse' ? action : 'hold', rule, recipient: address, unscanned: true }
    if (when.found === undefined) return { action, rule, recipient: address }
    if (when.found.some((one) => departure.found!.has(one))) return { action, rule, recipient: address }
  }
  const isKnown = recipient === null ? departure.isKnownPlace === true : recipient.sort !== 'new'
  const sent = preset === 'open' || (preset === 'known' && isKnown)
  return { action: sent ? 'send' : 'hold', rule: null, recipient: address }
}

/** True if a condition asks for what is not known of the message. */
function isUnknown(when: When, { found, hasAttachments, hasLinks }: Departure): boolean {
  if (when.found !== undefined && found === null) return true
  return (when.attachments !== undefined && hasAttachments === null) || (when.links !== undefined && hasLinks === null)
}

/** True if a condition holds but for what a scan finds, and for what is not known. */
function fits(when: When, departure: Departure, recipient: Recipient | null): boolean {
  const { channel, hasAttachments, hasLinks, recipients, newToday, amount } = departure
  if (when.channel && !when.channel.includes(channel)) return false
  // cards and logins have no text
  if (when.found && (channel === 'card' || channel === 'login')) return false
  if (when.to && (recipient === null || !when.to.some((entry) => isMeant(entry, recipient)))) return false
  if (when.reply !== undefined && !(recipient?.isAnswered ?? false)) return false
  if (when.attachments !== undefined && hasAttachments !== null && when.attachments !== hasAttachments) return false
  if (when.links !== undefined && hasLinks !== null && when.links !== hasLinks) return false
  if (when.recipients_over !== undefined && recipients.length <= when.recipients_over) return false
  if (when.new_per_day_over !== undefined && newToday <= when.new_per_day_over) return false
  return when.amount_over === undefined || (amount !== null && amount > when.amount_over)
}

function isMeant(entry: string, { address, aliases = [], sort }: Recipient): boolean {
  return entry === sort || entry === address || aliases.includes(entry) || (entry.startsWith('@') && address.endsWith(entry))
}

/**
 * A policy as it is stored. Throws Fault invalid_request with the place of a rule that cannot match, that contradicts another or that names what is
 * no address, domain or number.
 */
export function checkedPolicy({ preset, rules }: Policy): Policy {
  const checked: Rule[] = []
  for (const [index, { when, action }] of rules.entries()) {
    const at = `rules.${index}`
    const read = {
      ...when,
      ...(when.to ? { to: when.to.map((entry, number) => recipientOf(entry, `${at}.when.to.${number}`)) } : {}),
    }
    const channelsOfRule = possibleChannels(read, at)
    const over = checked.findIndex((earlier) => covers(earlier.when, read, channelsOfRule))
    if (over !== -1) throw coveredFault(at, { when: read, action }, { at: `rules.${over}`, rule: checked[over]! })
    checked.push({ when: read, action })
  }
  return { preset, rules: checked }
}

function coveredFault(at: string, { when, action }: Rule, earlier: { at: string; rule: Rule }): Fault {
  const isSame = covers(when, earlier.rule.when, earlier.rule.when.channel ?? channels)
  if (!isSame)
    return invalid(
      at,
      `${at} never matches: ${earlier.at} matches all that it does, and comes first. Change their order, or remove one.`,
    )
  const what = earlier.rule.action === action ? 'repeats' : 'contradicts'
  return invalid(at, `${at} ${what} ${earlier.at}, which has the same condition. Remove one of them.`)
}

/** True if all that a later rule matches, which is of these channels, an earlier one has matched. */
function covers(earlier: When, later: When, ofLater: readonly Channel[]): boolean {
  if (earlier.channel && !ofLater.every((one) => earlier.channel!.includes(one))) return false
  if (earlier.to && !coversRecipients(earlier.to, later.to, ofLater)) return false
  if (earlier.found && !(later.found?.every((one) => earlier.found!.includes(one)) ?? false)) return false
  for (const field of ['reply', 'attachments', 'links'] as const) {
    if (earlier[field] !== undefined && earlier[field] !== later[field]) return false
  }
  for (const field of ['recipients_over', 'new_per_day_over', 'amount_over'] as const) {
    const [least, given] = [earlier[field], later[field]]
    if (least !== undefined && (given === undefined || given < least)) return false
  }
  return true
}

function coversRecipients(
  earlier: readonly string[],
  later: readonly string[] | undefined,
  ofLater: readonly Channel[],
): boolean {
  const isOfMessages = ofLater.every((one) => one === 'email' || one === 'sms')
  if (isOfMessages && sorts.every((sort) => earlier.includes(sort))) return true
  return (
    later?.every((entry) => earlier.includes(entry) || earlier.includes(entry.slice(Math.max(0, entry.indexOf('@'))))) ?? false
  )
}

/** What only messages have, by the channels that have it. */
const only: [field: keyof When, channels: readonly Channel[]][] = [
  ['to', ['email', 'sms']],
  ['reply', ['email']],
  ['attachments', ['email']],
  ['links', ['email', 'sms']],
  ['found', ['email', 'sms']],
  ['recipients_over', ['email']],
  ['new_per_day_over', ['email', 'sms']],
  ['amount_over', ['card']],
]

/** The channels of which a rule can match something. Throws Fault invalid_request where there are none. */
function possibleChannels(when: When, at: string): readonly Channel[] {
  let left: readonly Channel[] = when.channel ?? channels
  for (const [field, having] of only) {
    if (when[field] === undefined) continue
    const both = left.filter((one) => having.includes(one))
    if (both.length === 0) {
      const which = having.join(' or ')
      throw invalid(
        `${at}.when.${field}`,
        `${at} never matches: only ${which} has ${field}, and the rest of the rule is of ${left.join(', ')}.`,
      )
    }
    left = both
  }
  if (when.reply !== undefined && when.to?.every((entry) => entry === 'new')) {
    throw invalid(`${at}.when.reply`, `${at} never matches: whoever is answered is not new.`)
  }
  if (!when.to) return left
  const reached = left.filter((one) => when.to!.some((entry) => !entry.startsWith('+') !== (one === 'sms') || isSort(entry)))
  if (reached.length === 0) {
    throw invalid(`${at}.when.to`, `${at} never matches: ${left.join(', ')} has no such recipients.`)
  }
  return reached
}

function recipientOf(entry: string, param: string): string {
  if (isSort(entry)) return entry
  if (/^\+[1-9]\d{6,14}$/.test(entry)) return entry
  if (/^\+?[\d ().-]+$/.test(entry) && isIP(entry) === 0) {
    throw invalid(param, `${entry} is not a number such as +15550100123.`)
  }
  const address = entryOf(entry, param)
  if (!address.includes('.', address.lastIndexOf('@'))) {
    throw invalid(param, `${entry} is neither own, known, new, an address, a domain such as @example.net, nor a number.`)
  }
  const domain = address.slice(address.lastIndexOf('@') + 1)
  if (!hasKnownTopLevel(domain)) {
    const topLevel = domain.slice(domain.lastIndexOf('.') + 1)
    throw invalid(
      param,
      `${entry} is of no known domain: there is no top-level domain ${topLevel}, neither public nor for networks of one's own (internal, lan, home.arpa ...).`,
    )
  }
  return address
}

function isSort(entry: string): boolean {
  return (sorts as readonly string[]).includes(entry)
}
