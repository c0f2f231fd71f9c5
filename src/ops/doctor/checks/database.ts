import type { Database, ServerReport } from '../../../store/database.ts'
import { about, sharedCheck, type Check } from '../check.ts'
import type { Line } from '../model.ts'

/** Connections of a box to the server. */
const ofOneBox = 12

/** Compares the database server with what a box needs of it, where the database is on one. */
export function databaseServer({ database }: { database: Pick<Database, 'inspect' | 'several'> }): Check {
  return sharedCheck('database server', 'often', async () => {
    const report = await database.inspect()
    if (report === null) return []
    return [
      server(report),
      ...isolation(report, database.several),
      durability(report),
      ...standby(report, database.several),
      connections(report),
    ]
  })
}

function server({ problem, program }: ServerReport): Line {
  const line = about('database', 'server')
  if (problem === undefined) return line.pass(`${program}, in UTF8 and with texts compared byte by byte.`)
  return line.fail(`The database ${problem}`, 'Until it is such a database again, the box cannot be restarted.')
}

function isolation({ isolation: found, readsCommitted }: ServerReport, several: boolean): Line[] {
  const line = about('database', 'isolation')
  if (found !== 'serializable')
    return [
      line.fail(
        `Transactions of the box are ${found.toUpperCase()}, not SERIALIZABLE: two that run at once can miss each other's changes.`,
        'Let database.url name the server itself: a pooler between them drops settings of the session (PgBouncer: ignore_startup_parameters = options).',
      ),
    ]
  if (readsCommitted === undefined) return []
  if (readsCommitted) return [line.pass('SERIALIZABLE and READ COMMITTED are what they say.')]
  const message = 'A transaction in READ COMMITTED does not see what is committed meanwhile'
  const fix =
    'YugabyteDB: set yb_enable_read_committed_isolation=true on each tserver. Otherwise let database.url name the server itself, not a pooler that changes the isolation.'
  return [
    several
      ? line.fail(`${message}: boxes miss events of each other.`, fix)
      : line.warn(`${message}: several boxes could not use this database.`, fix),
  ]
}

const reload = `psql -U postgres -c "SELECT pg_reload_conf()"`

function durability({ fsync, commit }: ServerReport): Line {
  const line = about('database', 'durability')
  if (!fsync)
    return line.fail(
      'The server syncs nothing to its disk (fsync = off): a crash of its machine loses mail that was acknowledged, and can damage the database.',
      `psql -U postgres -c "ALTER SYSTEM SET fsync = on"\n${reload}\nWhere the line stays, it is set on the command line of the server.`,
    )
  if (commit === 'off')
    return line.fail(
      'The server confirms before it has stored (synchronous_commit = off): its crash loses mail that was acknowledged.',
      `psql -U postgres -c "ALTER SYSTEM SET synchronous_commit = on"\n${reload}\nWhere the line stays, it is set for the database (ALTER DATABASE … RESET synchronous_commit), the user (ALTER ROLE …), or on the command line of the server.`,
    )
  return line.pass('What is acknowledged is on the disk of the server.')
}

const loss = "mail that was acknowledged is lost with the server's disk, or when a standby takes over"

/** With one box it is as with a file, unless there is a standby, which may take over. */
function standby({ program, synchronous, commit, standbys }: ServerReport, several: boolean): Line[] {
  // their servers are replicas of each other
  if (/Yugabyte|-YB-|Cockroach/.test(program)) return []
  const line = about('database', 'standby')
  const setting = `psql -U postgres -c "ALTER SYSTEM SET synchronous_standby_names = '*'"\n${reload}`
  const make = `Make a standby with pg_basebackup -R (Patroni: synchronous_mode), or writing waits for one. Once it is connected:\n${setting}`
  if (synchronous === '') {
    if (standbys && standbys.length > 0)
      return [line.warn(`${named(standbys)} asynchronous (synchronous_standby_names is empty): ${loss}.`, setting)]
    if (!several && standbys) return [line.pass('There is none: mail is as safe as the disk of the server, and its backups.')]
    return [line.warn(`None is synchronous (synchronous_standby_names is empty): ${loss}.`, make)]
  }
  if (!['on', 'remote_apply'].includes(commit))
    return [
      line.warn(
        `A COMMIT does not wait until a standby has stored it (synchronous_commit = ${commit}): ${loss}.`,
        `psql -U postgres -c "ALTER SYSTEM SET synchronous_commit = on"\n${reload}\nWhere the line stays, it is set for the database (ALTER DATABASE … RESET synchronous_commit), the user (ALTER ROLE …), or on the command line of the server.`,
      ),
    ]
  if (standbys === undefined)
    return [
      line.pass(
        `Each COMMIT waits for a standby (synchronous_standby_names = '${synchronous}'); which are connected only a member of pg_monitor sees.`,
      ),
    ]
  const waitedFor = standbys.filter((one) => one.synchronous)
  if (waitedFor.length > 0) return [line.pass(`Synchronous: ${waitedFor.map(({ name }) => name).join(', ')}.`)]
  return [
    line.fail(
      `None that synchronous_standby_names names ('${synchronous}') is connected: each COMMIT waits for one.`,
      'Start the standby, or look at its log: it has to connect with this application_name (primary_conninfo).',
    ),
  ]
}

function named(standbys: readonly { name: string }[]): string {
  return `${standbys.map(({ name }) => name).join(', ')} ${standbys.length === 1 ? 'is' : 'are'}`
}

function connections({ connections: limits }: ServerReport): Line {
  const line = about('database', 'connections')
  const fewest = limits.toSorted((one, other) => one.max - one.used - (other.max - other.used))[0]!
  const { limit, used, max } = fewest
  const message = `${used} of ${max} are in use (${limit})`
  if (max - used >= ofOneBox) return line.pass(`${message}.`)
  return line.warn(
    `${message}: a box needs about ${ofOneBox}, and is refused where there are no more.`,
    'End what has connections open and does not need them (SELECT usename, application_name, count(*) FROM pg_stat_activity GROUP BY 1, 2), or raise the limit: max_connections needs a restart of the server, ALTER DATABASE … CONNECTION LIMIT and ALTER ROLE … CONNECTION LIMIT do not.',
  )
}
