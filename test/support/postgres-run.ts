import type { TestProject } from 'vitest/node'
import { addTemplate, startPostgres } from './postgres-server.ts'

/** Starts the server for all boxes of a run: `npm run test:postgres`. */
export default async function setup(_project: TestProject): Promise<() => Promise<void>> {
  const server = await startPostgres({ synchronous_commit: 'off' })
  await addTemplate(server)
  process.env['TEST_POSTGRES'] = server.url('%')
  return () => server.close()
}
