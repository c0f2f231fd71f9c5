import type { Value } from '../database.ts'
import { stopping, tooSlow } from '../faults.ts'
import type { SlowReader } from '../slow-reads.ts'
import { KeptConnection, sqlState } from './connections.ts'
import { driverFault } from './failures.ts'
import { statementOf } from './statements.ts'
import type { PostgresTarget } from './target.ts'

/** Milliseconds for the server to notice its own timeout before the connection is given up. */
const grace = 2000

/** The longest deadline there is: that of an export. */
const longest = 3600_000

/** A connection of its own for slow reads, which the server aborts at their deadline. */
export class SlowConnection implements SlowReader {
  readonly #connection: KeptConnection
  #stopped = false

  constructor(target: PostgresTarget) {
    this.#connection = new KeptConnection(target, { timeout: longest, session: { default_transaction_read_only: 'on' } })
  }

  async read<Row>(text: string, values: Value[], deadline: number): Promise<Row[]> {
    if (this.#stopped) throw stopping()
    let late = false
    let timer: NodeJS.Timeout | undefined
    try {
      const connection = await this.#connection.open()
      timer = setTimeout(() => {
        late = true
        void this.#connection.end()
      }, deadline + grace)
      await connection.query(`SET statement_timeout = ${Math.max(1, Math.ceil(deadline))}`)
      const { name: _name, ...query } = statementOf(text, values)
      const { rows } = await connection.query(query)
      return rows as Row[]
    } catch (error) {
      if (this.#stopped) throw stopping()
      if (late || sqlState(error) === '57014') throw tooSlow()
      if (sqlState(error) === undefined) void this.#connection.end()
      throw driverFault(error)
    } finally {
      clearTimeout(timer)
    }
  }

  async terminated(): Promise<void> {}

  async stop(): Promise<void> {
    this.#stopped = true
    await this.#connection.end()
  }
}
