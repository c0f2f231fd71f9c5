import { readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parse } from '../../../src/message/parse.ts'
import type { Screening } from '../../../src/mail/model.ts'
import { honestMails } from './honest.ts'
import { hostileMails, ways } from './hostile.ts'

/** From so many points on a message is suspicious. */
const threshold = 50

/** What was found in each mail, as it was looked through by hand. */
const file = new URL('../../fixtures/screening.json', import.meta.url)

function findingsOf({ score, reasons, hidden_text_omitted }: Screening): string {
  const said = reasons.map(({ kind, where }) => `${kind} (${where})`)
  return `${score}, ${hidden_text_omitted} omitted${said.length === 0 ? '' : `: ${[...new Set(said)].join(', ')}`}`
}

test('each of 200 hostile mails is found, in each of 12 ways, and its order is in no text', async () => {
  expect(ways).toHaveLength(12)
  const missed: string[] = []
  for (const { name, raw, where, order } of hostileMails()) {
    const { text, snippet, screening } = await parse(raw)
    const reason = screening.reasons.find(
      (one) => (one.kind === 'instruction' || one.kind === 'invisible_characters') && where.includes(one.where),
    )
    if (screening.score < threshold || !reason) missed.push(`${name}: ${findingsOf(screening)}`)
    if (text.includes(order.slice(0, 20)) || snippet.includes(order.slice(0, 20)) || text.includes('mallory'))
      missed.push(`${name}: ${text}`)
    if (!text.includes('We will come back to you by Monday.')) missed.push(`${name}: lacks what is seen: ${text}`)
  }
  expect(missed).toEqual([])
})

test('under 2 % of 200 honest mails are suspicious, and their text says what is seen', async () => {
  const suspicious: string[] = []
  const lacking: string[] = []
  for (const { name, raw, words } of honestMails()) {
    const { text, screening } = await parse(raw)
    if (screening.score >= threshold) suspicious.push(name)
    if (words !== null && !name.includes('receipt') && !name.includes('only images') && !text.includes(words.body.slice(-20)))
      lacking.push(`${name}: ${text}`)
  }
  expect(lacking).toEqual([])
  expect(suspicious).toEqual(['a letter on attacks 1'])
})

test('what is found in each mail is what is written down', async () => {
  const found: Record<string, string> = {}
  for (const { name, raw } of [...hostileMails(), ...honestMails()]) found[name] = findingsOf((await parse(raw)).screening)
  if (process.env['WRITE']) writeFileSync(file, `${JSON.stringify(found, null, 2)}\n`)
  expect(found).toEqual(JSON.parse(readFileSync(file, 'utf8')))
})
