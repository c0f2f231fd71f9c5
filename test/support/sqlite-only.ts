/** Tests of what only SQLite has, or what is not on PostgreSQL yet, with the reason: `npm run test:postgres` leaves them out. */
const reasons: Record<string, readonly string[]> = {}

export const sqliteOnly = Object.values(reasons).flat()
