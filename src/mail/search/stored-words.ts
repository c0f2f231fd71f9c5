import { inflate } from '../../store/blobs.ts'
import type { WordIndex } from '../../store/copy/side.ts'
import { searchableBody } from '../email-store.ts'
import { indexedWords } from './full-text.ts'
import { vectorOf } from './text-vectors.ts'

interface StoredText {
  identity_id: string
  from_address: string
  from_name: string
  subject: string
  copies: number
  deflated: number | null
  bytes: Uint8Array | null
}

/** The search index of stored e-mails, also of those in the trash. */
export const wordIndex: WordIndex = {
  reader(database) {
    const columns = `identity_id, from_address, from_name, subject, raw_id, body_id`
    const query = database.prepare(
      `SELECT identity_id, from_address, from_name, subject, deflated, bytes,
          (SELECT count(*) FROM emails WHERE raw_id = found.raw_id) + (SELECT count(*) FROM emails_trash WHERE raw_id = found.raw_id) AS copies
        FROM (SELECT ${columns} FROM emails WHERE seq = ? UNION ALL SELECT ${columns} FROM emails_trash WHERE seq = ?) AS found
        LEFT JOIN blobs ON blobs.id = found.body_id`,
    )
    return (seq) => {
      const row = query.get(seq, seq) as StoredText | undefined
      if (!row) return undefined
      const { identity_id, from_name, from_address, subject, copies } = row
      const body = searchableBody(bodiesOf(row), copies)
      return indexedWords({ identity_id, sender: `${from_name} ${from_address}`, subject, body })
    }
  },
  vector: ({ owner, ...texts }) => vectorOf(owner, texts),
}

function bodiesOf({ deflated, bytes }: StoredText): { body_text: string | null; text: string } {
  if (!bytes?.length) return { body_text: null, text: '' }
  return JSON.parse(inflate(deflated === 1, bytes).toString('utf8')) as { body_text: string | null; text: string }
}
