import type { Command } from 'commander'
import { parsePostgresUrl } from '../../config/database/postgres-url.ts'
import { describeTarget, type PostgresTarget } from '../../store/postgres/target.ts'
import type { Config } from '../../config.ts'
import { moveBox } from '../../ops/move/move.ts'
import { type BoxOptions, holdsBox, ofBox, settingsOf } from '../support/box.ts'
import { untilSignal } from '../support/job.ts'
import { actAsOwner, mustBeOpen } from '../support/owner.ts'
import { Failure } from '../support/refuse.ts'
import { say } from '../support/say.ts'

interface Options extends BoxOptions {
  to: string
}

/** `pillarbox move --to postgres://…`, and back. */
export function addMoveCommand(program: Command): void {
  const command = program
    .command('move')
    .description(
      'move all data of a stopped box from SQLite to PostgreSQL, or back; after an interruption the same command goes on',
    )
    .requiredOption(
      '--to <database>',
      'postgres://user@host/database, or postgres for database.url as set in the settings; or sqlite',
    )
  ofBox(command, { account: false }).action(move)
}

async function move(options: Options): Promise<void> {
  process.umask(0o077)
  const config = await settingsOf(options)
  const { data_dir } = config
  mustBeOpen(data_dir)
  if (!holdsBox(data_dir)) throw new Failure(`There is no box in ${data_dir}.`, 'no_box')
  const to = targetOf(options.to, config)
  actAsOwner(data_dir)
  const input = { data_dir, database: config.database.url, to, several: config.database.several }
  const interrupted = 'Interrupted. What was copied is kept: run the same command again, and it goes on.'
  const tables = await untilSignal((signal) => moveBox(input, { signal, onProgress: tell }), interrupted)
  if (process.stderr.isTTY) process.stderr.write('\n')
  const rows = Object.values(tables).reduce((sum, table) => sum + table.rows, 0)
  const place = to === 'sqlite' ? `${data_dir}/pillarbox.db` : describeTarget(to)
  const [setting, former] =
    to === 'sqlite'
      ? ['Remove database.url from the settings', `${describeTarget(config.database.url!)}, which was not changed,`]
      : ['Set database.url in the settings to it', `${data_dir}/pillarbox.db, which was not changed,`]
  say(
    options,
    { to: to === 'sqlite' ? 'sqlite' : 'postgres', database: place, rows, tables, setting: 'database.url' },
    `All data is in ${place}: ${rows} rows in ${Object.keys(tables).length} tables, each with the same checksum as before.\n` +
      `${setting}, then start the box.\nRemove ${former} once the box has run: it is not used any more.`,
  )
}

function targetOf(to: string, { database: { url } }: Config): PostgresTarget | 'sqlite' {
  if (to === 'sqlite') return to
  if (to === 'postgres') {
    if (url !== undefined) return url
    throw new Failure(
      'database.url is not set. Set it, or give the URL: --to postgres://user@host/database',
      'invalid_request',
      'to',
    )
  }
  try {
    return parsePostgresUrl(to)
  } catch (error) {
    throw new Failure(`--to ${(error as Error).message}, or be sqlite.`, 'invalid_request', 'to')
  }
}

function tell(rows: number): void {
  if (process.stderr.isTTY) process.stderr.write(`\r${rows} rows   `)
}
