import { once } from 'node:events'
import type { Command } from 'commander'
import { day, hour, minute, second } from '../../core/clock.ts'
import { Failure, refuse } from '../support/refuse.ts'
import { linesOf, readLine } from './source.ts'
import { type LogLine, LogTrail } from './trail.ts'
import { withJson } from '../support/say.ts'
import { loggable, printable } from '../../core/log.ts'

interface Options {
  messageId?: string
  to?: string
  from?: string
  ip?: string
  since?: string
  file?: string
  unit: string
  follow?: boolean
  json?: boolean
}

/** Exit statuses: 0, lines found; 1, none found; 2, the log could not be read. */
const statuses = { nothing: 1, unread: 2 }

export function addLogCommand(program: Command): void {
  const command = program
    .command('log')
    .description('all log lines of a message: from the SMTP connection to webhooks, from the API call to its bounce')
    .option('--message-id <id>', 'its Message-ID')
    .option('--to <address>', 'a recipient; @example.com for any of a domain')
    .option('--from <address>', 'the sender: of the envelope for received mail, the identity for sent mail')
    .option('--ip <address>', 'the client that sent it, or the server that received it')
    .option('--since <time>', 'from this time: 2026-11-22T10:00:00Z, or 30min, 2h, 1d ago')
    .option('--file <file>', 'read this file instead of the journal; - is standard input')
    .option('--unit <name>', 'the systemd unit whose journal is read', 'pillarbox')
    .option('--follow', 'follow the log until stopped')
  withJson(command).addHelpText(
    'after',
    `
Exit status 0: something was found; 1: nothing was; 2: the log could not be read.
Without systemd, for example: docker compose logs --no-log-prefix pillarbox | pillarbox log --file - --to ada@example.com`,
  )
  command.action((options: Options) => show(options).catch((error: unknown) => refuse(error, statuses.unread)))
}

async function show({ json, since: when, file, unit, follow = false, ...input }: Options): Promise<void> {
  const wanted = { message_id: input.messageId, to: input.to, from: input.from, ip: input.ip }
  if (Object.values(wanted).every((value) => value === undefined)) {
    throw new Failure('Specify the message: --message-id, --to, --from or --ip.', 'nothing_asked')
  }
  if (follow && file !== undefined && file !== '-') {
    throw new Failure(
      `--follow works only with the journal; for a file: tail -F ${file} | pillarbox log --file - …`,
      'not_followed',
    )
  }
  const since = when === undefined ? undefined : timeOf(when)
  const trail = new LogTrail(wanted)
  const earliest = since === undefined ? '' : new Date(since).toISOString()
  let found = 0
  let skipped = 0
  let read = 0
  let gone = false
  process.stdout.on('error', () => (gone = true))
  for await (const text of linesOf({ file, unit, since, follow })) {
    const line = readLine(text)
    if (!line) {
      skipped += text.trim() === '' ? 0 : 1
      continue
    }
    read += 1
    if (String(line['time']) < earliest) continue
    for (const one of trail.take(line)) {
      found += 1
      await write(json ? printable(JSON.stringify(one)) : wordsOf(one))
      if (gone) return
    }
  }
  if (skipped > 0)
    process.stderr.write(`${skipped} ${skipped === 1 ? 'line was' : 'lines were'} not from the box, and skipped.\n`)
  if (found > 0) return
  const elsewhere =
    read > 0 || file !== undefined ? '' : ' Does the box run as another unit (--unit), or write its log to a file (--file)?'
  process.stderr.write(`Nothing was found in ${read} ${read === 1 ? 'line' : 'lines'} of the log.${elsewhere}\n`)
  process.exitCode = statuses.nothing
}

/** An error of the output is seen by the listeners of `error`. */
async function write(text: string): Promise<void> {
  if (!process.stdout.write(`${text}\n`)) await once(process.stdout, 'drain').catch(() => undefined)
}

const units: Record<string, number> = { s: second, min: minute, h: hour, d: day }

/** Milliseconds since the Unix epoch. Throws Failure for an invalid time. */
export function timeOf(text: string): number {
  const [, amount, unit] = /^(\d{1,6}) ?(s|min|h|d)(?: ago)?$/.exec(text) ?? []
  if (amount !== undefined) return Date.now() - Number(amount) * units[unit!]!
  const at = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(at))
    throw new Failure(`--since must be a time such as 2026-11-22T10:00:00Z, or 30min, 2h, 1d, not ${text}.`, 'bad_time')
  return at
}

/** Fields with a format of their own. */
const told = new Set(
  (
    'level time part msg from to to_count ip helo mx tls cipher verified code enhanced_code reply ms attempt result next_attempt_at ' +
    'spf dkim dmarc arc spam event host error from_domain return_path'
  ).split(' '),
)

/** A line of the log for people, on one line. */
function wordsOf(line: LogLine): string {
  const { level, time, part = 'box', msg } = line
  const at = String(time).slice(0, 23).replace('T', ' ')
  const mark = level === 'info' || level === 'debug' ? '' : `${String(level).toUpperCase()} `
  const facts = [...parties(line), ...verdicts(line), ...outcome(line)].filter((fact) => fact !== '')
  const rest = Object.entries(line).filter(([name, value]) => !told.has(name) && value !== null && value !== undefined)
  const ids = rest.map(([name, value]) => `${name}=${plain(value)}`)
  const head = `${at} ${String(part).padEnd(10)} ${mark}${String(msg)}`
  const body = facts.length === 0 ? '' : `: ${facts.join(', ')}`
  return loggable(`${head}${body}${ids.length === 0 ? '' : ` (${ids.join(' ')})`}`, 8192)
}

function parties({ from, to, to_count, ip, helo, mx, tls, verified, event, host }: LogLine): string[] {
  const all = [to].flat().filter((one) => typeof one === 'string')
  const count = typeof to_count === 'number' ? to_count : all.length
  const recipients = count > 5 ? `${all.slice(0, 5).join(' ')} and ${count - 5} more` : all.join(' ')
  const sender = from === '' ? '<>' : plain(from)
  const server = mx
    ? `at ${plain(mx)}${ip ? ` [${plain(ip)}]` : ''}`
    : ip
      ? `client ${plain(ip)}${helo ? ` (${plain(helo)})` : ''}`
      : ''
  const trust = verified === true ? ', certificate checked' : verified === false ? ', certificate not checked' : ''
  return [
    event === undefined ? '' : `${plain(event)} to ${plain(host)}`,
    sender === '' ? '' : `from ${sender}`,
    recipients === '' ? '' : `to ${recipients}`,
    server,
    tls ? `${plain(tls)}${trust}` : '',
  ]
}

function verdicts({ spf, dkim, dmarc, spam }: LogLine): string[] {
  if (spf === undefined) return []
  const signatures = [dkim].flat().filter((one) => typeof one === 'string')
  return [
    `SPF ${plain(spf)}`,
    `DKIM ${signatures.length === 0 ? 'none' : signatures.join(' ')}`,
    `DMARC ${plain(dmarc)}`,
    spam === true ? 'spam' : '',
  ]
}

function outcome({ result, attempt, reply, code, error, next_attempt_at, ms }: LogLine): string[] {
  const said = reply ?? error ?? (typeof code === 'number' ? `status ${code}` : undefined)
  return [
    typeof attempt === 'number' ? `attempt ${attempt}` : '',
    plain(result),
    said === undefined || said === null ? '' : `“${plain(said)}”`,
    typeof next_attempt_at === 'string' ? `next ${next_attempt_at.slice(0, 19).replace('T', ' ')}` : '',
    typeof ms === 'number' ? `${ms} ms` : '',
  ]
}

function plain(value: unknown): string {
  if (value === undefined || value === null) return ''
  if (Array.isArray(value)) return value.map(plain).join(',')
  return typeof value === 'string' ? value : JSON.stringify(value)
}
