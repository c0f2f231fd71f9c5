import { join } from 'node:path'
import type { Command } from 'commander'
import type { ChainPlace, ChainReport } from '../audit/chain.ts'
import type { AuditRow } from '../audit/model.ts'
import { verifyAuditOf } from '../audit/verify.ts'
import { BackupArchive } from '../ops/backup/archive/archive.ts'
import { timeOf } from './log/log.ts'
import { type Box, type BoxOptions, everyOne, ofBox, onBox, placeOf, type Printed, settingsOf } from './support/box.ts'
import { actAsOwner, mustBeOpen } from './support/owner.ts'
import { Failure } from './support/refuse.ts'
import { say, table } from './support/say.ts'
import { databaseElsewhere } from '../store/postgres/note.ts'
import { wholeNumber } from './support/whole-number.ts'

/** `pillarbox audit [list]` and `pillarbox audit verify`. */
export function addAuditCommand(program: Command): void {
  const audit = program.command('audit').description('the audit log: who did what, from where, to what')
  ofBox(audit.command('list', { isDefault: true }).description('rows of the audit log, newest first'))
    .option('--all', 'of all accounts of the box')
    .option('--since <time>', 'from this time: 2026-11-22T10:00:00Z, or 30min, 2h, 1d ago')
    .option('--action <action>', 'an action such as key.created, or key.* for all of keys')
    .option('--actor <actor>', 'the id of a key or person, operator or anonymous')
    .option('--identity <id>', 'the id of an identity')
    .option('--limit <count>', 'maximum number of rows', wholeNumber(1), 100)
    .action(onBox(list))
  const verify = audit
    .command('verify')
    .description('check that no row of the audit log was changed or removed; the box may run')
    .option('--backup <file>', 'and that the last row in this backup is still in it')
    .addHelpText('after', '\nExit status 0: the log is unchanged; 1: it is not.')
  ofBox(verify, { account: false }).action(check)
}

interface Filter {
  all?: boolean
  since?: string
  action?: string
  actor?: string
  identity?: string
  limit: number
}

async function list(box: Box, { all, since, action, actor, identity, limit }: Filter): Promise<Printed> {
  const given = {
    action,
    actor,
    identity_id: identity,
    after: since === undefined ? undefined : new Date(timeOf(since)).toISOString(),
  }
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(given)) if (value !== undefined) query.set(name, value)
  const path = `${all ? '/v1/audit/box' : '/v1/audit'}${query.size === 0 ? '' : `?${query.toString()}`}`
  const rows = await everyOne<AuditRow>(box, path, limit)
  const lines = rows.map((row) => [
    String(row.seq),
    row.at,
    ...(all ? [row.account_id] : []),
    row.actor,
    row.client ?? '',
    row.address ?? '',
    row.count > 1 ? `${row.action} ×${row.count}` : row.action,
    row.target ?? '',
    Object.keys(row.detail).length === 0 ? '' : JSON.stringify(row.detail),
  ])
  const headings = ['ROW', 'AT', ...(all ? ['ACCOUNT'] : []), 'ACTOR', 'CLIENT', 'ADDRESS', 'ACTION', 'TARGET', 'DETAIL']
  return [rows, rows.length === 0 ? 'Nothing was found.' : table(headings, lines)]
}

async function check({ backup, ...options }: BoxOptions & { backup?: string }): Promise<void> {
  const { data_dir } = await placeOf(options)
  mustBeOpen(data_dir)
  const known = backup === undefined ? undefined : await headIn(backup)
  const report = await reportOf(options, data_dir, known)
  const { valid, rows, first_seq, last_seq, head, faults } = report
  const what = rows === 0 ? 'no rows' : `${rows} rows, ${first_seq} to ${last_seq}`
  const words = valid
    ? `The audit log is unchanged: ${what}. Its head is ${head}.`
    : `The audit log was changed (${what}):\n${faults.map((fault) => `row ${fault.seq} ${fault.what}`).join('\n')}`
  if (!valid) process.exitCode = 1
  say(options, report, words)
}

async function reportOf(options: BoxOptions, data_dir: string, known: ChainPlace | undefined): Promise<ChainReport> {
  const elsewhere = databaseElsewhere(data_dir)
  const database = elsewhere === undefined ? undefined : (await settingsOf(options)).database.url
  if (elsewhere !== undefined && database === undefined) throw new Failure(`${elsewhere} Set database.url.`, 'on_postgresql')
  actAsOwner(data_dir)
  if (database === undefined) return verifyAuditOf(join(data_dir, 'pillarbox.db'), known)
  // with the driver, which boxes on SQLite do not need
  const { verifyAuditOn } = await import('../audit/verify-postgres.ts')
  return verifyAuditOn(database, known)
}

async function headIn(file: string): Promise<{ seq: number; hash: Buffer }> {
  const { audit } = (await BackupArchive.open(file)).manifest
  if (!audit) throw new Failure(`${file} has no audit log: it was made by an earlier version.`, 'no_audit')
  return { seq: audit.seq, hash: Buffer.from(audit.hash, 'hex') }
}
