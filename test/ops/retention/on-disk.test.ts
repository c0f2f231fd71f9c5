import { randomInt } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isOnServer, openStore } from '../../support/open-store.ts'
import { expect, test } from 'vitest'
import { deliver, message } from '../../support/appliance.ts'
import { passphraseFile, pillarbox } from '../backup/command.ts'
import { day, kept, type Kept } from './box.ts'

/** A message with words that no other has. */
interface Letter {
  id: string
  from: string
  subject: string
  body: string
}

const hour = day / 24

test('words of purged mail are not in the database file once retention has run, and other mail is still found', async () => {
  const { box, at, ada, clock, job } = await kept()
  const { body: bob } = await box.call('POST', '/v1/identities', { name: 'Bob' })
  const [before, purged, aged, emptied] = [await letters(10), await letters(20), await letters(10), await letters(10)]
  const removed = await letters(10, bob['email'] as string)
  const after = await letters(10)
  for (const { id } of purged) await box.call('DELETE', `${at}/emails/${id}?purge=true`)
  for (const { id } of emptied) await box.call('DELETE', `${at}/emails/${id}`)
  await box.call('POST', `${at}/trash/empty`)
  await box.call('DELETE', `/v1/identities/${bob.id}`)
  for (const { id } of aged) await box.call('DELETE', `${at}/emails/${id}`)
  clock.advance(30 * day)
  await job('empty-trash')
  for (const { id, ...words } of [...before, ...after])
    for (const query of Object.values(words)) expect([query, await found(query)]).toEqual([query, [id]])
  await box.app.stop()
  const file = join(box.directory, 'data', 'pillarbox.db')
  expect(wordsIn(file, [...purged, ...aged, ...emptied, ...removed])).toEqual([])
  expect(wordsIn(file, [...before, ...after])).toHaveLength(60)

  async function letters(count: number, to = ada.email): Promise<Letter[]> {
    return arrive({ box, clock }, count, to)
  }

  async function found(query: string): Promise<string[]> {
    const { body } = await box.call('GET', `${at}/emails/search?query=${query}`)
    return (body.data as { id: string }[]).map(({ id }) => id)
  }
})

test('mail that is purged after a run, and mail that arrives beside it, are treated alike in the next', async () => {
  const { box, at, ada, clock, job } = await kept()
  const file = join(box.directory, 'data', 'pillarbox.db')
  const rest: Letter[] = []
  const gone: Letter[] = []
  for (let turn = 0; turn < 3; turn += 1) {
    const [first, ...others] = await arrive({ box, clock }, 3, ada.email)
    rest.push(...others)
    gone.push(first!)
    await box.call('DELETE', `${at}/emails/${first!.id}?purge=true`)
    clock.advance(hour)
    await Promise.all([job('empty-trash'), arrive({ box, clock }, 3, ada.email).then((some) => rest.push(...some))])
  }
  for (const { id, body } of rest) {
    const { body: list } = await box.call('GET', `${at}/emails/search?query=${body}`)
    expect(list.data).toMatchObject([{ id }])
  }
  await box.app.stop()
  expect(wordsIn(file, gone)).toEqual([])
})

test('words of purged mail are in no backup that is made afterwards', async () => {
  const { box, at, ada, clock } = await kept()
  const purged = await arrive({ box, clock }, 20, ada.email)
  const rest = await arrive({ box, clock }, 20, ada.email)
  for (const { id } of purged) await box.call('DELETE', `${at}/emails/${id}?purge=true`)
  const [file, copy] = [join(box.directory, 'box.tar'), join(box.directory, 'copy')]
  const passphrase = ['--passphrase-file', passphraseFile(box.directory)]
  expect(await pillarbox(box, 'backup', file, ...passphrase)).toMatchObject({ status: 0, errors: '' })
  expect(await pillarbox(box, 'verify', file, ...passphrase)).toMatchObject({ status: 0, errors: '' })
  expect(await pillarbox(box, 'restore', file, '--data', copy, ...passphrase)).toMatchObject({ status: 0, errors: '' })
  const database = join(copy, 'pillarbox.db')
  expect(wordsIn(database, purged)).toEqual([])
  expect(wordsIn(database, rest)).toHaveLength(60)
})

/** Delivers messages, each from its own sender. */
async function arrive({ box, clock }: Pick<Kept, 'box' | 'clock'>, count: number, to: string): Promise<Letter[]> {
  const sent = Array.from({ length: count }, () => ({ from: word(), subject: word(), body: word() }))
  for (const { from, subject, body } of sent) {
    const raw = message(
      {
        From: `${from} <${from}@sender.test>`,
        Subject: `About ${subject}`,
        'Message-ID': `<${clock.now()}.${word()}@sender.test>`,
      },
      `The word is ${body}\n${'Some more text that all have in common.\n'.repeat(20)}`,
    )
    expect(await deliver(box.smtp, { to, raw })).toMatch(/^250/)
  }
  const database = openStore(join(box.directory, 'data', 'pillarbox.db'), { readOnly: true, timeout: 60_000 })
  try {
    const query = database.prepare('SELECT id FROM emails WHERE subject = ?')
    return sent.map((one) => ({ ...one, id: query.get(`About ${one.subject}`)!['id'] as string }))
  } finally {
    database.close()
  }
}

function word(): string {
  return Array.from({ length: 14 }, () => String.fromCharCode(97 + randomInt(26))).join('')
}

/**
 * Which of the words of these messages a database contains: as bytes anywhere in its file, or in any row on a server, or as terms of the search
 * index.
 */
function wordsIn(file: string, letters: Letter[]): string[] {
  const server = isOnServer(file)
  const database = openStore(file)
  const listed = (query: string, column: string): string[] =>
    database
      .prepare(query)
      .all()
      .map((row) => String(row[column]))
  const tables = server ? listed(`SELECT tablename FROM pg_tables WHERE schemaname = current_schema()`, 'tablename') : []
  const bytes = server
    ? tables
        .flatMap((table) => listed(`SELECT t::text AS line FROM ${table} t`, 'line'))
        .join('\n')
        .toLowerCase()
    : readFileSync(file).toString('latin1').toLowerCase()
  if (!server) database.exec(`CREATE VIRTUAL TABLE temp.terms USING fts5vocab (main, emails_search, 'row')`)
  // those of a server are in the rows
  const terms = new Set(server ? [] : listed('SELECT term FROM temp.terms', 'term'))
  database.close()
  const words = letters.flatMap(({ from, subject, body }) => [from, subject, body])
  return words.filter((one) => bytes.includes(one) || terms.has(one))
}
