import { sql } from '../../../src/store/database.ts'
import { openedWithTable } from '../opened.ts'
import { writeLine } from '../../support/write-line.ts'

// commits one row after the other (or `lanes` of them at a time), and writes the id of each to standard output once it was told
const [directory = '', rows = '1000000000', lanes = '1', longLog = '16384'] = process.argv.slice(2)
const { database } = await openedWithTable(directory, { longLog: Number(longLog) })
let left = Number(rows)
async function lane(): Promise<void> {
  while (left-- > 0) {
    const v = 'row '.repeat(100 + (left % 500))
    const row = await database.transaction((tx) => tx.get<{ id: number }>(sql`INSERT INTO t (v) VALUES (${v}) RETURNING id`))
    await writeLine(`ACK ${row!.id}`)
  }
}
await Promise.all(Array.from({ length: Number(lanes) }, lane))
await database.close()
