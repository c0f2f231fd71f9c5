import type { Command } from 'commander'
import { restoreBackup, type RestoredBox } from '../../ops/backup/restore.ts'
import { type BoxOptions, settingsOf } from '../support/box.ts'
import { declared } from '../docs/docs.ts'
import { passphraseIn } from '../../ops/backup/key-files.ts'
import { say, withJson } from '../support/say.ts'
import { untilSignal } from '../support/job.ts'

interface Options extends BoxOptions {
  passphraseFile?: string
  masterKey?: string
  withoutKeys?: boolean
}

export function addRestoreCommand(program: Command): void {
  const command = program
    .command('restore <file>')
    .description('restore a box from a backup into an empty directory')
    .option('-c, --config <file>', 'settings file (default: $PILLARBOX_CONFIG, else ./pillarbox.yaml if there is one)')
    .option('--data <directory>', 'target directory, missing or empty (default: $PILLARBOX_DATA_DIR, else from the settings)')
    .option('--passphrase-file <file>', 'file with the passphrase of the keys in the backup')
    .option('--master-key <file>', "the box's master key, if it is stored elsewhere")
    .option(
      '--without-keys',
      'discard encrypted data: one-time passwords, webhooks with their secrets, second factors, DKIM keys',
    )
  withJson(command).action(async (file: string, options: Options) => {
    process.umask(0o077)
    const { data_dir, keys_dir, master_key_file, database } = await settingsOf(options)
    const input = {
      file,
      data_dir,
      database: database.url,
      several: database.several,
      keys_dir,
      master_key_file,
      passphrase: passphraseIn(options.passphraseFile),
      master_key: options.masterKey,
      without_keys: options.withoutKeys === true,
      columns: () => declared(({ sealed }) => sealed),
    }
    const part = 'Interrupted. Partial files were removed; the database can have a part of the box: run the same command again.'
    const restored = await untilSignal((signal) => restoreBackup(input, signal), database.url && part)
    const { manifest, ...rest } = restored
    const { box_id, created_at, mail_domain } = manifest
    say(options, { ...rest, box_id, created_at, mail_domain, warnings: warningsOf(restored) }, formatRestored(restored))
  })
}

function formatRestored(restored: RestoredBox): string {
  const { data_dir, keys_dir, keys, manifest } = restored
  const key = {
    backup: `The keys were written to ${keys_dir}.`,
    given: `The master key was written to ${keys_dir}.`,
    there: 'The existing master key is the right one, and was not changed.',
    new: `A new master key was created in ${keys_dir}.`,
  }[keys]
  const lines = [
    `${data_dir} contains the box of ${manifest.mail_domain} as of ${manifest.created_at}. ${key}`,
    ...warningsOf(restored).map((warning) => `- ${warning}`),
    `Start it with: pillarbox serve, with data_dir ${data_dir} and its former settings.`,
  ]
  return lines.join('\n')
}

/** Kinds of undelivered messages. */
const words: Record<string, string> = {
  email: 'e-mails (one for each recipient)',
  'email-release': 'scheduled e-mails',
  'operator-mail': 'e-mails for the operator',
  report: 'reports to other domains',
  webhook: 'webhook calls',
  sms: 'text messages',
}

function warningsOf({ manifest, waiting, lost, keys, data_dir }: RestoredBox): string[] {
  const { created_at } = manifest
  const warnings = [
    `Changes after ${created_at} are not in it: objects revoked or deleted since then exist again, and later data is missing.`,
  ]
  const queued = Object.entries(waiting).map(([kind, count]) => `${words[kind] ?? kind}: ${count}`)
  if (queued.length > 0) {
    warnings.push(
      `Its queue contains ${queued.join('; ')}. They are sent when the box starts, including any that were already sent after the backup. ` +
        'To inspect the mail first, start it with outbound.mode: none.',
    )
  }
  const given = Object.entries(lost).map(([place, count]) => `${count} of ${place}`)
  if (keys === 'new' || given.length > 0) {
    warnings.push(
      `Discarded with the keys: ${given.length > 0 ? given.join(', ') : 'nothing'}. Set up webhooks, one-time passwords and second factors again, and publish new DKIM records ` +
        `(pillarbox domain list --data ${data_dir}).`,
    )
  }
  return warnings
}
