import { loggable } from '../../core/log.ts'
import type { LogLine } from './trail.ts'

/** Fields with a format of their own. */
const told = new Set(
  (
    'level time part msg from to to_count ip helo mx tls cipher verified code enhanced_code reply ms attempt result next_attempt_at ' +
    'spf dkim dmarc arc spam event host error from_domain return_path'
  ).split(' '),
)

/** A line of the log for people, on one line. */
export function wordsOf(line: LogLine): string {
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

/** Sender, recipient and server. */
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
