import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Command } from 'commander'
import { version } from '../../version.ts'
import { backUpInChild } from '../../ops/backup/run-in-child.ts'
import type { BackupInput, MadeBackup } from '../../ops/backup/make.ts'
import { passphraseIn } from '../../ops/backup/key-files.ts'
import { BackupDirectory } from '../../ops/backup/backup-directory.ts'
import type { Config } from '../../config.ts'
import type { Job } from '../../jobs/model.ts'
import { type BoxOptions, ofBox, runningBox, settingsOf } from '../support/box.ts'
import { exits } from '../support/refuse.ts'
import { resultOf, untilSignal } from '../support/job.ts'
import { actAsOwner, mustBeOpen } from '../support/owner.ts'
import { say, remark } from '../support/say.ts'

interface Options extends BoxOptions {
  force?: boolean
  auto?: boolean
  passphraseFile?: string
}

export function addBackupCommand(program: Command): void {
  const command = program
    .command('backup [file]')
    .description('back up the whole box into one file, running or stopped')
    .option('--passphrase-file <file>', 'include the keys, encrypted with the passphrase in the first line of this file')
    .option('--force', 'overwrite an existing file')
    .option('--auto', 'write it to backup.directory as set in the settings, and remove surplus backups; for timers')
  ofBox(command).action(async (file: string | undefined, options: Options) => {
    process.umask(0o077)
    if (options.auto) {
      if (file !== undefined) command.error('Specify a file or --auto, not both.', { exitCode: exits.usage })
      return auto(options)
    }
    return toFile(file ?? command.error('Specify the file to write, or --auto.', { exitCode: exits.usage }), options)
  })
}

async function toFile(file: string, options: Options): Promise<void> {
  const input = { ...inputOf(await settingsOf(options)), file, force: options.force === true }
  const work = (signal: AbortSignal): Promise<MadeBackup> =>
    backUpInChild({ ...input, passphrase: passphraseIn(options.passphraseFile) }, { signal })
  const made = await untilSignal(work)
  tell(options, made, answerOf(made))
}

async function auto(options: Options): Promise<void> {
  const box = await runningBox(options)
  if (box) {
    const result = await untilSignal(async (signal) => resultOf(box, await box.call<Job>('POST', '/v1/backups', {}), signal))
    const { name, size, warnings } = result as { name: string; size: number; warnings: string[] }
    warn(warnings)
    return say(options, result, `The box wrote ${name} (${size} bytes).`)
  }
  const config = await settingsOf(options)
  const input = inputOf(config)
  // the box could neither list nor remove a file of root
  if (existsSync(config.data_dir)) actAsOwner(config.data_dir)
  const made = await untilSignal((signal) => new BackupDirectory(config.backup).add(input, { signal }))
  return tell(options, made, { ...answerOf(made), removed: made.removed })
}

function inputOf({ blobs, data_dir, database, keys_dir, master_key_file, mail }: Config): Omit<BackupInput, 'file'> {
  mustBeOpen(data_dir)
  const created_at = new Date().toISOString()
  return {
    data_dir,
    database: database.url,
    objects: blobs.s3,
    keys_dir,
    master_key_file,
    mail_domain: mail.domain,
    program_version: version,
    created_at,
  }
}

function tell(options: Options, { file, size, manifest, warnings }: MadeBackup, answer: object): void {
  warn(warnings)
  const { rows, created_at, keys } = manifest
  const sealed = keys === 'sealed' ? 'keys encrypted' : 'without the keys'
  const what = `${rows['identities'] ?? 0} identities, ${rows['emails'] ?? 0} e-mails, ${sealed}; ${size} bytes`
  say(
    options,
    answer,
    `${file} contains the box as of ${created_at} (${what}).\nIt does not contain the settings: keep the configuration file too.\n` +
      `Verify it with: pillarbox verify ${file}\nKeep a copy outside ${dirname(file)}.`,
  )
}

function warn(warnings: readonly string[]): void {
  for (const warning of warnings) remark(`Warning: ${warning}\n`)
}

function answerOf({ file, size, manifest, warnings }: MadeBackup): object {
  const { program_version, box_id, created_at, database_version, keys, entries, rows } = manifest
  return { file, size, box_id, created_at, program_version, database_version, keys: keys === 'sealed', entries, rows, warnings }
}
