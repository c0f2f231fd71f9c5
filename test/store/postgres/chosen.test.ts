import { expect, test } from 'vitest'
import { absent } from '../../support/peer.ts'
import { postgresPrograms } from '../../support/postgres-server.ts'
import { run } from '../../support/program.ts'

/** Tests of boxes that use most of what they ask of a database; `npm run test:postgres` runs all. */
const chosen = [
  'mail/inbox',
  'mail/search',
  'mail/threads',
  'mail/deletion',
  'identities/names',
  'identities/cascade',
  'accounts/keys',
  'policy/holds',
  'cards/states',
  'cards/races',
  'contract/idempotency',
  'jobs/jobs',
  'sms/loopback',
  'outbound/send',
  'realtime/lives',
].map((name) => `test/${name}.test.ts`)

test('a chosen part of the tests of boxes passes on PostgreSQL too', { timeout: 600_000 }, async () => {
  if (postgresPrograms() === undefined) {
    absent('PostgreSQL', 'PostgreSQL is not installed (apt-get install postgresql)')
    return
  }
  const { code, output } = await run('bin/with-node', ['vitest', 'run', '--project', 'box', ...chosen], {
    env: { TEST_DATABASE: 'postgres' },
  })
  expect({ code, output: code === 0 ? '' : output.toString() }).toEqual({ code: 0, output: '' })
})
