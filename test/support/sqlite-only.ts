/** Tests that are left out on PostgreSQL (`npm run test:postgres`): of one file, all or those with these names. */
interface LeftOut {
  file: string
  tests?: readonly RegExp[]
}

/** By the reason: what only SQLite has, or what PostgreSQL does not have yet. */
const reasons: Record<string, readonly LeftOut[]> = {
  'It looks at the database file, its pages or its log.': [],
  'It uses pragmas, functions or the trigger language of SQLite beside the box.': [
    { file: 'test/mail/copies.test.ts', tests: [/^its attachments are listed/, /^one copy that cannot be stored/] },
    { file: 'test/mail/fair-reads.test.ts', tests: [/^a search is answered while/] },
  ],
  'It is of the engine of SQLite itself.': [],
  'Backup, verify and restore are not on PostgreSQL yet (docs/decisions/0034-postgresql.md).': [],
}

/** Why a test is left out on PostgreSQL; undefined for those that run there. */
export function reasonToLeaveOut(file: string, name: string): string | undefined {
  const found = Object.entries(reasons).find(([, all]) =>
    all.some((one) => file.startsWith(one.file) && (one.tests?.some((test) => test.test(name)) ?? true)),
  )
  return found?.[0]
}
