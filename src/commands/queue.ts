import type { Command } from 'commander'
import { type BoxOptions, ofBox, withBox } from './support/box.ts'
import { everyOne } from './support/found.ts'
import { span, say, table, withJson } from './support/say.ts'

type Options = BoxOptions & { json?: boolean }

interface Entry {
  id: string
  kind: string
  destination: string
  about: Record<string, string>
  state: string
  attempts: number
  last_answer: string | null
  smtp_code: number | null
  enhanced_code: string | null
  mx: string | null
  ip: string | null
  reason: string | null
  due_at: string | null
  created_at: string
  age: number
}

interface Attempt {
  number: number
  started_at: string
  ended_at: string | null
  outcome: string
  answer: string | null
  smtp_code: number | null
  enhanced_code: string | null
  mx: string | null
  ip: string | null
  tls: string | null
}

interface Depth {
  kind: string
  destination?: string
  waiting: number
  running: number
  age: number
  due_at: string | null
}

/** `pillarbox queue list|summary|show|retry|drop`. */
export function addQueueCommand(program: Command): void {
  const queue = program.command('queue').description('the queue: outgoing mail, text messages and webhooks of all accounts')
  const add = (name: string, words: string): Command => withJson(ofBox(queue.command(name).description(words)))
  add('list', 'waiting and running deliveries, newest first')
    .option('--state <state>', 'open, waiting, running, done, failed or all', 'open')
    .option('--kind <kind>', 'email, email-release, webhook, sms, …')
    .option('--destination <name>', 'a domain, the id of a webhook, …')
    .option('--limit <count>', 'maximum number of entries', '100')
    .action(list)
  add('summary', 'length and age of the queue by kind and destination').action(summary)
  add('show', 'one delivery with every attempt').argument('<id>', 'from the list').action(show)
  add('retry', 'retry a waiting or failed delivery now').argument('<id>', 'from the list').action(retry)
  add('drop', 'cancel a waiting delivery: its sender gets a failure').argument('<id>', 'from the list').action(drop)
}

interface Listing extends Options {
  state: string
  kind?: string
  destination?: string
  limit: string
}

async function list({ state, kind, destination, limit, ...options }: Listing): Promise<void> {
  await withBox(options, async (box) => {
    const query = new URLSearchParams({
      state,
      ...(kind === undefined ? {} : { kind }),
      ...(destination === undefined ? {} : { destination }),
    })
    const entries = await everyOne<Entry>(box, `/v1/queue?${query.toString()}`, Math.max(1, Number(limit) || 100))
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
    const headings = ['ID', 'KIND', 'TO', 'STATE', 'TRIES', 'AGE', 'NEXT', 'CODE', 'MX', 'LAST ANSWER']
    say(options, entries, entries.length === 0 ? 'The queue is empty.' : table(headings, rows))
  })
}

async function summary(options: Options): Promise<void> {
  await withBox(options, async (box) => {
    const all = await box.call<{ kinds: Depth[]; destinations: Depth[] }>('GET', '/v1/queue/summary')
    const rows = all.destinations.map((one) => [
      one.kind,
      one.destination ?? '',
      String(one.waiting),
      String(one.running),
      span(one.age),
      one.due_at ?? '',
    ])
    const words = table(['KIND', 'DESTINATION', 'WAITING', 'RUNNING', 'OLDEST', 'NEXT'], rows)
    say(options, all, rows.length === 0 ? 'The queue is empty.' : words)
  })
}

async function show(id: string, options: Options): Promise<void> {
  await withBox(options, async (box) => {
    const entry = await box.call<Entry & { history: Attempt[] }>('GET', `/v1/queue/${id}`)
    say(options, entry, formatEntry(entry))
  })
}

async function retry(id: string, options: Options): Promise<void> {
  await withBox(options, async (box) => {
    const entry = await box.call<Entry & { history: Attempt[] }>('POST', `/v1/queue/${id}/retry`)
    const when = box.running ? 'Retrying now' : 'It will be retried when the box starts'
    say(options, entry, `${when}.\n\n${formatEntry(entry)}`)
  })
}

async function drop(id: string, options: Options): Promise<void> {
  await withBox(options, async (box) => {
    say(options, await box.call('DELETE', `/v1/queue/${id}`), 'The delivery was dropped.')
  })
}

function formatEntry({ history, about, ...entry }: Entry & { history: Attempt[] }): string {
  const facts = Object.entries({ ...entry, age: span(entry.age), ...about }).filter(([, value]) => value !== null)
  const rows = history.map((one) => {
    const { number, started_at, outcome, answer, tls } = one
    return [String(number), started_at, outcome, codesOf(one), serverOf(one), tls ?? '', answer ?? '']
  })
  const headings = ['TRY', 'AT', 'OUTCOME', 'CODE', 'MX', 'TLS', 'ANSWER']
  const tries = rows.length === 0 ? 'No attempt yet.' : table(headings, rows)
  return `${facts.map(([name, value]) => `${name.padEnd(14)}${value}`).join('\n')}\n\n${tries}`
}

/** The reply code of a mail server, with its enhanced code. */
function codesOf({ smtp_code, enhanced_code }: Pick<Entry, 'smtp_code' | 'enhanced_code'>): string {
  return [smtp_code, enhanced_code].filter((code) => code !== null).join(' ')
}

/** A mail server with its address. */
function serverOf({ mx, ip }: Pick<Entry, 'mx' | 'ip'>): string {
  return [mx, ip === null ? null : `[${ip}]`].filter((part) => part !== null).join(' ')
}

/** Cuts an answer to fit a line of a list. */
function cut(answer: string): string {
  const line = answer.replaceAll(/\s+/g, ' ')
  return line.length > 60 ? `${line.slice(0, 59)}…` : line
}
