import { minute } from '../../core/clock.ts'
import { displayLine, upToLength } from '../../core/text.ts'
import { Undelivered } from './undelivered.ts'

/** The command that a reply belongs to. */
export type Stage = 'greeting' | 'mail' | 'rcpt' | 'data'

/** Replies to these concern the recipient; a message has only one. */
const aboutRecipient = new Set<Stage>(['rcpt', 'data'])

/** Maximum characters of a stored reply. */
const longest = 1000

/** The retry delay after greylisting, in milliseconds. */
const greylistDelay = 5 * minute

/** Parses a reply (RFC 5321 4.2, RFC 3463); `code` is 0 for an invalid one. */
export function readReply(text: string): { code: number; enhanced: string | null; text: string } {
  const lines = text.split(/\r?\n/).slice(0, 50)
  const first = lines[0] ?? ''
  const code = Number(/^([2-5]\d\d)(?:[ -]|$)/.exec(first)?.[1] ?? 0)
  const enhanced = /^\d{3}[ -]([245]\.\d{1,3}\.\d{1,3})(?:\s|$)/.exec(first)?.[1] ?? null
  // every line repeats the codes
  const prefix = code === 0 ? '' : enhanced === null ? /^\d{3}[ -]?/ : /^\d{3}[ -](?:[245]\.\d{1,3}\.\d{1,3}(?:\s|$))?/
  const words = lines.map((line) => line.replace(prefix, '')).join(' ')
  return { code, enhanced, text: upToLength(displayLine(words), longest).trim() }
}

/** The failure that a 4xx or 5xx reply means. */
export function failureOf(reply: string, stage: Stage): Undelivered {
  const { code, enhanced, text } = readReply(reply)
  if (code < 400) return new Undelivered({ outcome: 'deferred', response: `it sent an invalid reply: ${text.slice(0, 200)}` })
  const answer = { smtp_code: code, enhanced_code: enhanced, response: text }
  if (code < 500)
    return new Undelivered({ outcome: 'deferred', ...answer }, isGreylisting(answer) ? { maxDelay: greylistDelay } : {})
  return new Undelivered({
    outcome: 'bounced',
    ...answer,
    ...(isHard(answer) && aboutRecipient.has(stage) ? { hard: true } : {}),
  })
}

function isGreylisting({ smtp_code, enhanced_code, response }: FailureReply): boolean {
  if (/gr[ae]y-?\s?list/i.test(response)) return true
  // a full mailbox is not emptied in five minutes
  if (enhanced_code === '4.2.2' || smtp_code === 452) return false
  return smtp_code <= 451 && (enhanced_code === '4.7.1' || enhanced_code?.startsWith('4.2.') === true)
}

interface FailureReply {
  smtp_code: number
  enhanced_code: string | null
  response: string
}

/** A reply about a recipient, from a server or in a report. */
interface RecipientReply {
  smtp_code: number | null
  enhanced_code: string | null
  /** Its text. */
  response: string | null
}

/**
 * True if the address does not exist (a hard bounce): 5.1.x except errors of the sender (5.1.7 to 5.1.9), 5.2.1, or such a text where the code is
 * generic. Full mailboxes, policy and spam are not hard bounces.
 */
export function isHard({ smtp_code, enhanced_code, response }: RecipientReply): boolean {
  if (enhanced_code !== null && !/^5\.\d\.0$/.test(enhanced_code)) {
    return /^5\.1\.(?![789]$)\d+$/.test(enhanced_code) || enhanced_code === '5.2.1'
  }
  if (smtp_code !== null && ![550, 551, 553, 554].includes(smtp_code)) return false
  const words = response ?? ''
  return unknownRecipient.some((pattern) => pattern.test(words)) && !aboutSender.test(words)
}

const unknownRecipient = [
  /\b(?:no such|unknown|invalid|unrout(?:e)?able|non-?existent|bad destination)\s(?:\w+\s)?(?:user|recipient|mailbox|address|account|person|name)/i,
  /\b(?:user|recipient|mailbox|address|account|person)\b[^.;]{0,60}\b(?:unknown|invalid|disabled|not (?:found|known|exist|have)|doesn'?t (?:exist|have))/i,
  /\bno mailbox (?:here )?by that name\b/i,
]

const aboutSender = /spam|block|black|polic|reputation|denied|banned|listed|relay|\brbl\b|\bspf\b|\bdkim\b|\bdmarc\b|quota|full/i
