import { sql } from '../../store/database.ts'
import type { Database } from '../../store/database.ts'
import { about, reasonOf } from '../check.ts'
import type { Check } from '../check.ts'
import type { Line } from '../model.ts'

/** Longest time in milliseconds for reading the database page by page; searches wait meanwhile. */
const patience = 15_000

const restore = 'Stop the box and restore a backup: pillarbox restore FILE --data DIRECTORY'

/** Whether the database keeps what it is given. */
export function storeWrites({ database }: { database: Database }): Check {
  return {
    name: 'store writes',
    pace: 'often',
    async run() {
      const line = about('store', 'writing')
      try {
        await database.probe()
        return [line.pass('It keeps what it is given.')]
      } catch (error) {
        return [line.fail(`It keeps nothing: ${reasonOf(error)}`, 'Make room on the disk of data_dir, then restart the box.')]
      }
    },
  }
}

/** Whether the database is whole, page by page (`PRAGMA quick_check`). */
export function storeWhole({ database }: { database: Database }): Check {
  return { name: 'store whole', pace: 'seldom', run: async () => [await whole(database)] }
}

async function whole(database: Database): Promise<Line> {
  const line = about('store', 'integrity')
  try {
    const rows = await database.slow<{ quick_check: string }>(sql`PRAGMA quick_check(1)`, patience)
    const trouble = rows[0]?.quick_check ?? 'no answer'
    if (trouble === 'ok') return line.pass('Every page is sound.')
    return line.fail(`It is damaged: ${trouble.split('\n').at(-1)}`, restore)
  } catch (error) {
    const message = `It could not be read whole within ${patience / 1000} s: ${reasonOf(error)}`
    return line.warn(message, 'Prove it by a backup: pillarbox backup FILE && pillarbox verify FILE')
  }
}
