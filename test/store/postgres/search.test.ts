import { expect, onTestFinished, test } from 'vitest'
import { insertWords, matching } from '../../../src/mail/search/full-text.ts'
import type { Term } from '../../../src/mail/search/text-vectors.ts'
import { preparePostgres } from '../../../src/store/postgres/prepare.ts'
import { type Database, raw, sql } from '../../../src/store/database.ts'
import { folder } from '../../support/folder.ts'
import { randomFrom } from '../../support/random.ts'
import { opened as openedSqlite } from '../opened.ts'
import { emptyDatabase, opened, server } from './server.ts'

const vocabulary = [
  'hello',
  'Hello',
  'world',
  'café',
  'cafe',
  'CAFÉ',
  'naïve',
  'Ärger',
  'straße',
  'STRASSE',
  'über',
  'code',
  '123456',
  '12-34',
  "don't",
  'e.mail',
  'x_y',
  'Привет',
  'мир',
  'привет',
  'ΑΘΗΝΑ',
  'αθήνα',
  '東京',
  '東京都',
  '大阪',
  '한국어',
  'école',
  'e\u0301cole',
  'I\u0307stanbul',
  'ß',
  'foo\\bar',
  "o''q",
  'a',
  'an',
  'ano',
  'another',
  '½',
  '²',
  '٣٤',
  'ﬁne',
  'Ǆ',
  'ไทย',
  'हिन्दी',
  'שָׁלוֹם',
  '👍ok',
  'a👍b',
  ':*',
  "' | 'x",
  '&!',
]

test('two thousand random searches find the same e-mails on both engines', async () => {
  const postgres = await server()
  if (!postgres) return
  onTestFinished(() => postgres.close())
  const target = await emptyDatabase(postgres, 'search')
  await preparePostgres(target, false)
  const { database } = await opened(target)
  const { database: sqlite } = await openedSqlite(folder())
  onTestFinished(() => sqlite.close())
  const random = randomFrom(42)
  const words = (count: number): string =>
    Array.from({ length: count }, () => vocabulary[random(vocabulary.length)]!).join(random(5) === 0 ? ', ' : ' ')
  const emails = Array.from({ length: 800 }, (_, index) => ({
    seq: index + 1,
    identity_id: `ident_0${index % 3}abc`,
    sender: words(3),
    subject: words(4),
    body: words(25),
  }))
  for (const engine of [sqlite, database]) await fill(engine, emails)
  const term = (): Term => {
    const text = words(1 + (random(3) === 0 ? 1 + random(2) : 0))
    const prefix = random(4) === 0
    const column = [undefined, undefined, undefined, undefined, 'sender', 'subject'][random(6)] as Term['column']
    return {
      column,
      text: prefix
        ? Array.from(text)
            .slice(0, 1 + random(4))
            .join('')
        : text,
      prefix,
    }
  }
  let found = 0
  for (let query = 0; query < 2000; query += 1) {
    const terms = {
      identity_id: `ident_0${random(3)}abc`,
      wanted: Array.from({ length: 1 + random(2) }, term),
      unwanted: random(3) === 0 ? [term()] : [],
    }
    const selection = { columns: sql`emails.seq`, where: raw('1 = 1'), before: undefined, limit: 1000, offset: 0 }
    const [one, other] = await Promise.all(
      [sqlite, database].map((engine) => engine.slow<{ seq: number }>(matching(engine.engine, terms, selection), 20_000)),
    )
    expect({ terms, found: other!.map(({ seq }) => seq) }).toEqual({ terms, found: one!.map(({ seq }) => seq) })
    if (one!.length > 0) found += 1
  }
  expect(found).toBeGreaterThan(500)
})

async function fill(engine: Database, emails: (Parameters<typeof insertWords>[2] & { seq: number })[]): Promise<void> {
  await engine.transaction(async (tx) => {
    for (const { seq, ...email } of emails) {
      await insertWords(tx, seq, email)
      await tx.run(
        sql`INSERT INTO emails (seq, id, identity_id, thread_id, direction, status, from_address, from_name, to_text, subject, snippet, read, spam,
            automated, labels, size, has_attachments, codes, received_at, created_at, detail, trace, raw_id, body_id)
          VALUES (${seq}, ${`email_${seq}`}, ${email.identity_id}, 't', 'inbound', 'received', '', '', '', '', '', 0, 0, 0, '[]', 0, 0, '[]', '', '',
            '{}', '{}', 0, 0)`,
      )
    }
  })
}
