import { spawn } from 'node:child_process'
import { createReadStream } from 'node:fs'
import type { Readable } from 'node:stream'
import { Failure } from '../support/refuse.ts'
import type { LogLine } from './trail.ts'

interface LogSource {
  /** A file, or `-` for standard input; without one the journal. */
  file?: string | undefined
  unit: string
  /** In milliseconds since the Unix epoch. */
  since?: number | undefined
  follow: boolean
}

/** The longest line in characters; longer ones are not of the box. */
const longestLine = 1024 * 1024

/** The lines in order. Throws Failure with a remedy when they cannot be read. */
export async function* linesOf(source: LogSource): AsyncGenerator<string, void> {
  const { file } = source
  if (file === undefined) {
    yield* journalLines(source)
    return
  }
  const input = file === '-' ? process.stdin : createReadStream(file)
  try {
    yield* split(input)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const why = code === 'ENOENT' ? 'it does not exist' : code === 'EACCES' ? 'permission denied' : message
    throw new Failure(`${file === '-' ? 'Standard input' : file} cannot be read: ${why}.`, 'unreadable')
  }
}

/** Parses a line after any prefix of a log daemon; undefined when it is not of the box. */
export function readLine(text: string): LogLine | undefined {
  const start = text.indexOf('{"')
  if (start < 0) return undefined
  try {
    const line = JSON.parse(text.slice(start)) as LogLine
    // the format of journalctl -o json
    const { MESSAGE: inner } = line
    if (typeof inner === 'string') return readLine(inner)
    return typeof line['msg'] === 'string' && typeof line['time'] === 'string' ? line : undefined
  } catch {
    return undefined
  }
}

async function* journalLines({ unit, since, follow }: LogSource): AsyncGenerator<string, void> {
  const words = ['--unit', unit, '--output', 'cat', '--all', '--no-pager', '--quiet']
  if (since !== undefined) words.push('--since', `@${Math.floor(since / 1000)}`)
  if (follow) words.push('--follow', '--lines', 'all')
  const env = { ...process.env, LC_ALL: 'C', SYSTEMD_COLORS: '0' }
  const child = spawn('journalctl', words, { stdio: ['ignore', 'pipe', 'pipe'], env })
  let complaint = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (complaint = (complaint + text).slice(0, 2000)))
  const ended = new Promise<number | Error>((resolve) => {
    child.on('error', resolve)
    child.on('close', (code) => resolve(code ?? 0))
  })
  let lines = 0
  try {
    for await (const line of split(child.stdout)) {
      lines += 1
      yield line
    }
    const end = await ended
    if (end instanceof Error) throw withoutJournal(end)
    if (end !== 0 || /insufficient permissions|not seeing messages|No journal files/i.test(complaint))
      throw unread(complaint, unit)
    if (lines === 0) await requireRights(unit)
  } finally {
    child.kill()
  }
}

/** An empty result may mean that this user cannot read the journal, which `--quiet` does not report. */
async function requireRights(unit: string): Promise<void> {
  const child = spawn('journalctl', ['--lines', '1', '--output', 'cat', '--no-pager'], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, LC_ALL: 'C' },
  })
  let complaint = ''
  for await (const chunk of child.stderr.setEncoding('utf8')) complaint = `${complaint}${chunk as string}`.slice(0, 2000)
  if (/insufficient permissions|not seeing messages|No journal files/i.test(complaint)) throw unread(complaint, unit)
}

function withoutJournal({ code, message }: NodeJS.ErrnoException): Failure {
  const why = code === 'ENOENT' ? 'journalctl is not installed' : message
  return new Failure(
    `The journal cannot be read: ${why}. Pass the log as a file: pillarbox log --file FILE, or --file - for standard input.`,
    'no_journal',
  )
}

function unread(complaint: string, unit: string): Failure {
  if (/insufficient permissions|not seeing messages/i.test(complaint)) {
    const remedy = 'Run this as root, or join the group systemd-journal: usermod -aG systemd-journal NAME, then log in again.'
    return new Failure(`This user may not read the journal of ${unit}. ${remedy}`, 'journal_forbidden')
  }
  const why = complaint.trim().split('\n', 1)[0] || 'journalctl failed'
  return new Failure(
    `The journal cannot be read: ${why.replace(/\.$/, '')}. Pass the log as a file: pillarbox log --file FILE.`,
    'no_journal',
  )
}

async function* split(input: Readable): AsyncGenerator<string, void> {
  let begun = ''
  let overlong = false
  for await (const chunk of input.setEncoding('utf8')) {
    const lines = (begun + (chunk as string)).split('\n')
    begun = lines.pop()!
    for (const line of lines) {
      yield overlong ? '' : line
      overlong = false
    }
    if (begun.length <= longestLine) continue
    begun = ''
    overlong = true
  }
  if (begun !== '') yield begun
}
