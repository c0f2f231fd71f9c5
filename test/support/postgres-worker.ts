import { type MessagePort, parentPort } from 'node:worker_threads'
import pg from 'pg'
import { parserOf } from '../../src/store/postgres/values.ts'

interface Request {
  id: number
  url: string
  text?: string
  values?: unknown[]
  done: Int32Array
  port: MessagePort
}

const clients = new Map<number, pg.Client>()
const types = {
  getTypeParser: ((type: number) => parserOf(type) ?? pg.types.getTypeParser(type)) as typeof pg.types.getTypeParser,
}

parentPort!.on('message', (request: Request) => void answer(request))

async function answer({ id, url, text, values, done, port }: Request): Promise<void> {
  try {
    let client = clients.get(id)
    if (text === undefined) {
      await client?.end()
      clients.delete(id)
      port.postMessage({ rows: [], changes: 0 })
    } else {
      if (!client) {
        clients.set(id, (client = new pg.Client({ connectionString: url, types })))
        client.on('error', () => {})
        await client.connect()
      }
      const results: pg.QueryResult | pg.QueryResult[] = await client.query(text, values)
      const { rows, rowCount } = [results].flat().at(-1)!
      port.postMessage({ rows, changes: rowCount ?? 0 })
    }
  } catch (error) {
    port.postMessage({ failure: (error as Error).message })
  }
  Atomics.store(done, 0, 1)
  Atomics.notify(done, 0)
}
