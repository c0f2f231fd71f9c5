import type { Command } from 'commander'
import { moneyText } from '../cards/money.ts'
import type { Hold, HoldRow } from '../policy/model.ts'
import { type Box, everyOne, ofBox, onBox, type Printed } from './support/box.ts'
import { table } from './support/say.ts'
import { wholeNumber } from './support/whole-number.ts'

export function addHoldsCommand(program: Command): void {
  const holds = program.command('holds').description('messages and card reveals that wait for a person to approve them')
  const add = (name: string, words: string): Command => ofBox(holds.command(name).description(words))
  add('list', 'holds, newest first')
    .option('--status <status>', 'open, approved, rejected, expired, cancelled or all', 'open')
    .option('--limit <count>', 'maximum number of entries', wholeNumber(1), 100)
    .action(onBox(list))
  add('show', 'one hold with the whole message, and why it is held').argument('<id>', 'from the list').action(onBox(show))
  add('approve', 'let it leave')
    .argument('<id>', 'from the list')
    .option('--sha256 <digest>', 'of what you looked at: nothing else is approved')
    .option('--reason <text>', 'for the sender')
    .action(onBox(approve))
  add('reject', 'keep it from leaving')
    .argument('<id>', 'from the list')
    .option('--reason <text>', 'for the sender, who may write anew')
    .action(onBox(reject))
}

async function list(box: Box, { status, limit }: { status: string; limit: number }): Promise<Printed> {
  const query = new URLSearchParams({ status })
  const entries = await everyOne<HoldRow>(box, `/v1/holds?${query.toString()}`, limit)
  const rows = entries.map(({ id, status: state, about, created_at, expires_at, reasons, found }) => {
    return [id, state, about, created_at, expires_at, recipientsOf(reasons), found.map(({ kind }) => kind).join(' ')]
  })
  const headings = ['ID', 'STATUS', 'ABOUT', 'SINCE', 'EXPIRES', 'FOR', 'FOUND']
  return [entries, entries.length === 0 ? 'Nothing is held.' : table(headings, rows)]
}

async function show(box: Box, id: string): Promise<Printed> {
  const hold = await box.call<Hold>('GET', `/v1/holds/${id}`)
  return [hold, formatHold(hold)]
}

async function approve(box: Box, id: string, input: { sha256?: string; reason?: string }): Promise<Printed> {
  const { sha256, reason } = input
  const hold = await box.call<HoldRow>('POST', `/v1/holds/${id}/approve`, { sha256, reason })
  return [hold, `${box.running ? 'Approved: it leaves now' : 'Approved: it leaves when the box starts'}, or at its send_at.`]
}

async function reject(box: Box, id: string, { reason }: { reason?: string }): Promise<Printed> {
  const hold = await box.call<HoldRow>('POST', `/v1/holds/${id}/reject`, { reason })
  return [hold, 'Rejected: it is neither sent nor shown.']
}

function recipientsOf(reasons: HoldRow['reasons']): string {
  return [...new Set(reasons.flatMap(({ recipient }) => recipient ?? []))].join(' ')
}

function formatHold({ id, status, expires_at, sha256, created_by, reasons, found, email, sms, card, login }: Hold): string {
  const why = reasons.map(({ level, rule, recipient, unscanned }) => {
    const which = rule === null ? 'its preset' : `rule ${rule}`
    return `Held by the policy of the ${level}: ${which}${recipient === null ? '' : `, for ${recipient}`}${unscanned ? ', as it could not be scanned' : ''}`
  })
  const what = found.map(({ kind, place, sample }) => `Found: ${kind} in ${place}${sample === '' ? '' : ` (${sample})`}`)
  const head = [
    `${id}  ${status}, expires ${expires_at}`,
    `Sent by ${created_by ?? 'nobody'}`,
    ...why,
    ...what,
    `SHA-256 ${sha256}`,
  ]
  if (login) {
    const { label, host, purpose } = login
    return [...head, '', `login: ${label}`, `host: ${host ?? 'none'}`, `purpose: ${purpose ?? 'none'}`].join('\n')
  }
  if (card) {
    const { label, last4, amount_cents, currency, purpose } = card
    const facts = [
      `card: ${label}, ending in ${last4}`,
      `amount: ${moneyText(amount_cents, currency)}`,
      `purpose: ${purpose ?? 'none'}`,
    ]
    return [...head, '', ...facts].join('\n')
  }
  if (sms) return [...head, '', `from: ${sms.from}`, `to: ${sms.to}`, '', sms.body].join('\n')
  if (!email) return [...head, 'The message was deleted.'].join('\n')
  const { from, recipients, subject, attachments, body_text, text } = email
  const named = (['to', 'cc', 'bcc'] as const).flatMap((field) => {
    const all = recipients[field].map(({ address }) => address)
    return all.length === 0 ? [] : [`${field}: ${all.join(', ')}`]
  })
  const files = attachments.map(({ filename, size }) => `attachment: ${filename} (${size} bytes)`)
  return [...head, '', `from: ${from}`, ...named, `subject: ${subject}`, ...files, '', body_text ?? text].join('\n')
}
