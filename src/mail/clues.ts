import { firstValue, headersOf } from './headers.ts'
import type { HeaderField } from './headers.ts'
import { decodeWords } from './mime.ts'
import { Label } from './model.ts'

/** What the header of an archived message says of it that no parser of mail looks for. */
export interface Clues {
  /** When it reached the mailbox it was in: of the newest Received field, in milliseconds since the epoch. */
  received: number | undefined
  /** Of the Date field. */
  written: number | undefined
  read: boolean | undefined
  labels: string[]
  /** Of the Return-Path field; empty for the null sender. */
  sender: string | undefined
}

/** Reads them: `Status` and `X-Status` of mail programs, `X-Gmail-Labels`, and the fields of transport (RFC 5321 4.4). */
export function cluesIn(raw: Buffer): Clues {
  const fields = headersOf(raw)
  const received = firstValue(fields, 'received')
  const sender = firstValue(fields, 'return-path')
  return {
    received: received === undefined ? undefined : timeIn(received.slice(received.lastIndexOf(';') + 1)),
    written: timeIn(firstValue(fields, 'date') ?? ''),
    ...marksIn(fields),
    sender: sender === undefined ? undefined : /<([^<>\s]*)>/.exec(sender)?.[1],
  }
}

const flags: Record<string, string> = { A: 'answered', F: 'flagged', T: 'draft', D: 'deleted' }

function marksIn(fields: readonly HeaderField[]): { read: boolean | undefined; labels: string[] } {
  const status = firstValue(fields, 'status')
  const words = firstValue(fields, 'x-gmail-labels')
  const given = words === undefined ? [] : decodeWords(words.slice(0, 8000)).split(',')
  const named = given.map((word) => word.replaceAll('"', '').trim())
  const marked = Array.from(firstValue(fields, 'x-status')?.slice(0, 20) ?? '').flatMap((letter) => flags[letter] ?? [])
  const labels = [...marked, ...named.filter((word) => !/^(?:Unread|Opened)$/i.test(word))].filter(
    (word) => Label.safeParse(word).success,
  )
  const unread = named.some((word) => /^Unread$/i.test(word))
  const read = status === undefined ? (words === undefined ? undefined : !unread) : /R/.test(status.slice(0, 20))
  return { read, labels: [...new Set(labels)].slice(0, 100) }
}

function timeIn(text: string): number | undefined {
  const time = Date.parse(text.slice(0, 200).trim())
  return Number.isNaN(time) ? undefined : time
}
