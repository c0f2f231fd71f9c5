import type { Command } from 'commander'
import type { QueueEntry, QueueEntryWithHistory, QueueSummary } from '../ops/status/model.ts'
import { type Box, everyOne, ofBox, onBox, type Printed } from './support/box.ts'
import { span, table } from './support/say.ts'
import { wholeNumber } from './support/whole-number.ts'

export function addQueueCommand(program: Command): void {
  const queue = program.command('queue').description('the queue: outgoing mail, text messages and webhooks of all accounts')
  const add = (name: string, words: string): Command => ofBox(queue.command(name).description(words))
  add('list', 'waiting and running deliveries, newest first')
    .option('--state <state>', 'open, waiting, running, done, failed or all', 'open')
    .option('--kind <kind>', 'email, email-release, webhook, sms, …')
    .option('--destination <name>', 'a domain, the id of a webhook, …')
    .option('--limit <count>', 'maximum number of entries', wholeNumber(1), 100)
    .action(onBox(list))
  add('summary', 'length and age of the queue by kind and destination').action(onBox(summary))
  add('show', 'one delivery with every attempt').argument('<id>', 'from the list').action(onBox(show))
  add('retry', 'retry a waiting or failed delivery now').argument('<id>', 'from the list').action(onBox(retry))
  add('drop', 'cancel a waiting delivery: its sender gets a failure').argument('<id>', 'from the list').action(onBox(drop))
}

interface Filter {
  state: string
  kind?: string
  destination?: string
  limit: number
}

async function list(box: Box, { state, kind, destination, limit }: Filter): Promise<Printed> {
  const query = new URLSearchParams({
    state,
    ...(kind === undefined ? {} : { kind }),
    ...(destination === undefined ? {} : { destination }),
  })
  const entries = await everyOne<QueueEntry>(box, `/v1/queue?${query.toString()}`, limit)
  const rows = entries.map((entry) => [
    entry.id,
    entry.kind,
    entry.about['to'] ?? entry.destination,
    entry.state,
    String(entry.attempts),
    span(entry.age),
    entry.due_at ?? '',
    codesOf(entry),
    serverOf(entry),
    cut(entry.reason ?? entry.last_answer ?? ''),
  ])
  const headings = ['ID', 'KIND', 'TO', 'STATE', 'ATTEMPTS', 'AGE', 'NEXT', 'CODE', 'MX', 'LAST ANSWER']
  return [entries, entries.length === 0 ? 'The queue is empty.' : table(headings, rows)]
}

async function summary(box: Box): Promise<Printed> {
  const all = await box.call<QueueSummary>('GET', '/v1/queue/summary')
  const rows = all.destinations.map(({ kind, destination, waiting, running, age, due_at }) => {
    return [kind, destination, String(waiting), String(running), span(age), due_at ?? '']
  })
  const words = table(['KIND', 'DESTINATION', 'WAITING', 'RUNNING', 'OLDEST', 'NEXT'], rows)
  return [all, rows.length === 0 ? 'The queue is empty.' : words]
}

async function show(box: Box, id: string): Promise<Printed> {
  const entry = await box.call<QueueEntryWithHistory>('GET', `/v1/queue/${id}`)
  return [entry, formatEntry(entry)]
}

async function retry(box: Box, id: string): Promise<Printed> {
  const entry = await box.call<QueueEntryWithHistory>('POST', `/v1/queue/${id}/retry`)
  const when = box.running ? 'Retrying now' : 'It will be retried when the box starts'
  return [entry, `${when}.\n\n${formatEntry(entry)}`]
}

async function drop(box: Box, id: string): Promise<Printed> {
  return [await box.call('DELETE', `/v1/queue/${id}`), 'The delivery was dropped.']
}

function formatEntry({ history, about, ...entry }: QueueEntryWithHistory): string {
  const facts = Object.entries({ ...entry, age: span(entry.age), ...about }).filter(([, value]) => value !== null)
  const rows = history.map((one) => {
    const { number, started_at, outcome, answer, tls } = one
    return [String(number), started_at, outcome, codesOf(one), serverOf(one), tls ?? '', answer ?? '']
  })
  const headings = ['TRY', 'AT', 'OUTCOME', 'CODE', 'MX', 'TLS', 'ANSWER']
  const tries = rows.length === 0 ? 'No attempt yet.' : table(headings, rows)
  return `${facts.map(([name, value]) => `${name.padEnd(14)}${value}`).join('\n')}\n\n${tries}`
}

function codesOf({ smtp_code, enhanced_code }: Pick<QueueEntry, 'smtp_code' | 'enhanced_code'>): string {
  return [smtp_code, enhanced_code].filter((code) => code !== null).join(' ')
}

function serverOf({ mx, ip }: Pick<QueueEntry, 'mx' | 'ip'>): string {
  return [mx, ip === null ? null : `[${ip}]`].filter((part) => part !== null).join(' ')
}

function cut(answer: string): string {
  const line = answer.replaceAll(/\s+/g, ' ')
  return line.length > 60 ? `${line.slice(0, 59)}…` : line
}
