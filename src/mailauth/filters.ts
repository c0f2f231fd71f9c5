import * as z from 'zod'
import { type JsonBounds, parseForeign } from '../core/json.ts'
import type { Log } from '../core/log.ts'
import { reverseName } from '../net/networks.ts'
import { callConfigured } from '../net/configured.ts'
import { oneLine } from './authentication-results.ts'
import type { Lookup } from '../net/dns.ts'
import type { Envelope } from '../mail/model.ts'

export interface RspamdSettings {
  /** The URL of the controller or normal worker: `http://127.0.0.1:11333`. */
  url: string
  password?: string | undefined
  /** Timeout of one request, in milliseconds. */
  timeout: number
}

/** The result of a filter. `defer` asks the sender to try again later. */
interface FilterResult {
  action: 'keep' | 'spam' | 'reject' | 'defer'
  /** The SMTP reply when the message is not accepted. */
  reply: { code: number; enhanced: string; text: string } | null
  score: number
  symbols: string[]
}

const answerLimit = 1024 * 1024

/** rspamd lists everything found in a message, including every URL. */
const answerBounds: JsonBounds = { depth: 32, tokens: 200_000 }
const keepMessage: FilterResult = { action: 'keep', reply: null, score: 0, symbols: [] }

const Answer = z.object({
  action: z.string(),
  score: z.number(),
  symbols: z.record(z.string(), z.unknown()).default({}),
})

/** The first of these DNS block lists that lists the address (RFC 5782), or null. A list that does not answer is ignored. */
export async function blocklisted(address: string, lists: string[], lookup: Lookup): Promise<string | null> {
  const reversed = reverseName(address)
  if (reversed === null) return null
  const listed = await Promise.all(lists.map((list) => isListed(`${reversed}.${list}`, lookup)))
  return lists.find((_, index) => listed[index]) ?? null
}

/** Asks rspamd (`/checkv2`). Greylisting is ignored: the message is accepted. Without an answer in time it is accepted too, and that is logged. */
export async function rspamd(raw: Buffer, envelope: Envelope, settings: RspamdSettings, log?: Log): Promise<FilterResult> {
  try {
    const { status, text } = await callConfigured(new URL('/checkv2', settings.url), {
      method: 'POST',
      headers: headersOf(envelope, settings.password),
      body: raw,
      signal: AbortSignal.timeout(settings.timeout),
      limit: answerLimit,
    })
    if (status !== 200) throw new Error(`rspamd answered ${status}`)
    return filterResultOf(Answer.parse(parseForeign(text, 'The answer', answerBounds)))
  } catch (error) {
    log?.warn(
      { reason: error instanceof Error ? oneLine(error.message) : 'unknown' },
      'no answer from rspamd; message accepted without its check',
    )
    return keepMessage
  }
}

function filterResultOf({ action, score, symbols }: z.output<typeof Answer>): FilterResult {
  const rspamdResult = { score, symbols: Object.keys(symbols) }
  switch (action) {
    case 'reject':
      return {
        ...rspamdResult,
        action: 'reject',
        reply: { code: 550, enhanced: '5.7.1', text: 'This message was rejected as spam' },
      }
    case 'soft reject':
      return { ...rspamdResult, action: 'defer', reply: { code: 451, enhanced: '4.7.1', text: 'Try again later' } }
    case 'add header':
    case 'rewrite subject':
      return { ...rspamdResult, action: 'spam', reply: null }
    // `no action` and `greylist`: rspamd does not track retries, and an agent may be waiting for a code.
    default:
      return { ...rspamdResult, action: 'keep', reply: null }
  }
}

function headersOf(envelope: Envelope, password: string | undefined): string[] {
  const headers = ['IP', envelope.remote_address, 'Helo', envelope.helo, 'From', envelope.mail_from, 'Queue-Id', envelope.session]
  for (const recipient of envelope.recipients) headers.push('Rcpt', recipient)
  if (password !== undefined) headers.push('Password', password)
  // Header values are sent as Latin-1, which passes UTF-8 bytes unchanged. Line breaks and other controls become spaces.
  return headers.map((text) => Buffer.from(text.replace(/\p{Cc}/gu, ' ')).toString('latin1'))
}

async function isListed(name: string, lookup: Lookup): Promise<boolean> {
  try {
    const answers = await lookup(name, 'A')
    // 127.255.255.0/24 means that the list refused the query, not that it lists the address.
    return answers.some((answer) => typeof answer === 'string' && answer.startsWith('127.') && !answer.startsWith('127.255.255.'))
  } catch {
    return false
  }
}
