/** Tests that are left out on PostgreSQL (`npm run test:postgres`): of one file or folder, all or those with these names. */
interface LeftOut {
  file: string
  tests?: readonly RegExp[]
}

/** By the reason: what only SQLite has, or what PostgreSQL does not have yet (docs/decisions/0034-postgresql.md). */
const reasons: Record<string, readonly LeftOut[]> = {
  'It looks at the database file or its log, or for bytes on the disk, which a server has elsewhere.': [
    { file: 'test/logins/api.test.ts', tests: [/^nothing of a login but/, /^what is deleted or replaced is gone/] },
    { file: 'test/totp/api.test.ts', tests: [/^what is deleted is gone from the disk/, /^of many that come and go/] },
    { file: 'test/accounts/sessions.test.ts', tests: [/^neither the cookie nor the password/] },
    { file: 'test/cards/secrecy.test.ts', tests: [/^the encrypted data is in its row/, /^of cancelled cards/] },
    { file: 'test/contract/secrets.test.ts' },
    { file: 'test/webhooks/api.test.ts', tests: [/^secrets and headers do not lie open/] },
    { file: 'test/webhooks/purged.test.ts' },
    { file: 'test/mail/deletion.test.ts', tests: [/^a purged message is gone/] },
    {
      file: 'test/keys/former.test.ts',
      tests: [/^who has the former key/, /^nor after a rotation/, /^where the file cannot be/],
    },
    { file: 'test/ops/retention/age.test.ts', tests: [/^room that deleted mail took/] },
    { file: 'test/ops/backup/slow-asker.test.ts' },
  ],
  'It opens sealed values beside the box by their `rowid`.': [{ file: 'test/logins/api.test.ts', tests: [/^is bounded/] }],
  'It watches the engine of SQLite at work, or counts its reads.': [
    { file: 'test/webhooks/api.test.ts', tests: [/^an event reads none of the webhooks/] },
    { file: 'test/store/plans.test.ts', tests: [/^a box that held little/] },
    { file: 'test/ops/transfer/bounds.test.ts', tests: [/^whether a message is there already/] },
    { file: 'test/realtime/pressure.test.ts', tests: [/^1,000 waits ask the store/] },
  ],
  'On PostgreSQL what is enqueued waits for a claim, which any box makes.': [{ file: 'test/webhooks/backlog.test.ts' }],
  'It needs the speed of SQLite: on a slower one its rate limit recovers meanwhile.': [
    { file: 'test/mcp/rate.test.ts', tests: [/^a tool costs as many calls/] },
  ],
  'It restores with the settings of the box, which name a database that is not empty: test/store/postgres/backup.test.ts has another one.':
    [
      { file: 'test/ops/backup/load.test.ts' },
      { file: 'test/ops/backup/fixture.test.ts' },
      {
        file: 'test/ops/backup/restore.test.ts',
        tests: [/^a restored box begins/, /^without the keys/, /^nothing is restored over/, /^a backup is not written over/],
      },
      { file: 'test/ops/retention/on-disk.test.ts', tests: [/^words of purged mail are in no backup/] },
    ],
}

/** The same where each box is one of several (`npm run test:shared`), by the reason: what only one box alone does. */
const reasonsOfSeveral: Record<string, readonly LeftOut[]> = {
  'It looks for files of exports, which several boxes have in the database: test/store/postgres/several-exports.test.ts has them there.':
    [
      {
        file: 'test/ops/transfer/hostile.test.ts',
        tests: [
          /^an export is a file for its owner only/,
          /^an identity has three exports at once/,
          /^an export holds what its key may read/,
        ],
      },
    ],
  'Each of several boxes adds what it has counted to a minute: test/store/postgres/several-figures.test.ts has their sums.': [
    { file: 'test/ops/metrics/metrics.test.ts', tests: [/^a minute is written once/] },
  ],
  'It edits state.json of a stopped box, of which the row of several boxes counts at the start: test/store/postgres/several-states.test.ts edits a running one.':
    [
      { file: 'test/accounts/operator.test.ts', tests: [/^an account that the operator takes off the list/] },
      { file: 'test/accounts/plan-overrides.test.ts', tests: [/^an account in state.json has limits/] },
    ],
  'It moves the clock before the rights of a socket are read again, which several boxes do a moment later.': [
    { file: 'test/realtime/lives.test.ts', tests: [/a later end/] },
  ],
}

/** The files and folders of which all is left out. */
export const filesToLeaveOut = Object.values(reasons)
  .flat()
  .flatMap(({ file, tests }) => (tests ? [] : file.endsWith('/') ? `${file}**` : file))

/** Why a test is left out on PostgreSQL; undefined for those that run there. */
export function reasonToLeaveOut(file: string, name: string): string | undefined {
  const all = { ...reasons, ...(process.env['TEST_SHARED'] === '1' ? reasonsOfSeveral : {}) }
  const found = Object.entries(all).find(([, tests]) =>
    tests.some((one) => file.startsWith(one.file) && (one.tests?.some((test) => test.test(name)) ?? true)),
  )
  return found?.[0]
}
