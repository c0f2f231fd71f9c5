import type { Command } from 'commander'
import { restoreBackup, type RestoredBox } from '../../ops/backup/restore.ts'
import { type BoxOptions, settingsOf } from '../support/box.ts'
import { declared } from '../docs/declared.ts'
import { passphraseIn } from '../../ops/backup/key-files.ts'
import { say, withJson } from '../support/say.ts'
import { untilSignal } from '../support/job.ts'

interface Options extends BoxOptions {
  passphraseFile?: string
  masterKey?: string
  withoutKeys?: boolean
}

/** `pillarbox restore FILE --data DIR`. */
export function addRestoreCommand(program: Command): void {
  const command = program
    .command('restore <file>')
    .description('restore a box from a backup into an empty directory')
    .option('-c, --config <file>', 'settings file (default: $PILLARBOX_CONFIG, else ./pillarbox.yaml if there is one)')
    .option('--data <directory>', 'target directory, missing or empty (default: $PILLARBOX_DATA_DIR, else as the settings say)')
    .option('--passphrase-file <file>', 'file with the passphrase of the keys in the backup')
    .option('--master-key <file>', "the box's master key, when it was kept elsewhere")
    .option(
      '--without-keys',
      'give up what is sealed: one-time passwords, webhooks with their secrets, second factors, DKIM keys',
    )
  withJson(command).action(async (file: string, options: Options) => {
    process.umask(0o077)
    const { data_dir, keys_dir, master_key_file } = await settingsOf(options)
    const input = {
      file,
      data_dir,
      keys_dir,
      master_key_file,
      passphrase: passphraseIn(options.passphraseFile),
      master_key: options.masterKey,
      without_keys: options.withoutKeys === true,
      columns: () => declared(({ sealed }) => sealed),
    }
    const restored = await untilSignal((signal) => restoreBackup(input, signal))
    const { manifest, ...rest } = restored
    const { box_id, created_at, mail_domain } = manifest
    say(options, { ...rest, box_id, created_at, mail_domain, warnings: warningsOf(restored) }, formatRestored(restored))
  })
}

function formatRestored(restored: RestoredBox): string {
  const { data_dir, keys_dir, keys, manifest } = restored
  const key = {
    backup: `The keys were put into ${keys_dir}.`,
    given: `The master key was put into ${keys_dir}.`,
    there: 'The master key that was there is the right one, and was left as it is.',
    new: `A new master key was made in ${keys_dir}.`,
  }[keys]
  const lines = [
    `${data_dir} holds the box of ${manifest.mail_domain} as it was on ${manifest.created_at}. ${key}`,
    ...warningsOf(restored).map((warning) => `- ${warning}`),
    `Start it with: pillarbox serve, with data_dir ${data_dir} and the settings it had.`,
  ]
  return lines.join('\n')
}

/** Kinds of undelivered messages. */
const words: Record<string, string> = {
  email: 'e-mails (one for each recipient)',
  'email-release': 'e-mails of which the time had not come',
  'operator-mail': 'e-mails for the operator',
  report: 'reports to other domains',
  webhook: 'webhook calls',
  sms: 'text messages',
}

/** Warnings for the operator before the box starts. */
function warningsOf({ manifest, waiting, lost, keys, data_dir }: RestoredBox): string[] {
  const { created_at } = manifest
  const warnings = [
    `What happened after ${created_at} is not known to it: what was revoked or deleted since is there again, what came since is not.`,
  ]
  const queued = Object.entries(waiting).map(([kind, count]) => `${words[kind] ?? kind}: ${count}`)
  if (queued.length > 0) {
    warnings.push(
      `It had this to deliver: ${queued.join('; ')}. It sends them when it starts, also those that were sent since. ` +
        'To look at the mail first, start it with outbound.mode: none.',
    )
  }
  const given = Object.entries(lost).map(([place, count]) => `${count} of ${place}`)
  if (keys === 'new' || given.length > 0) {
    warnings.push(
      `Given up with the keys: ${given.length > 0 ? given.join(', ') : 'nothing'}. Set webhooks, one-time passwords and second factors up anew, and publish new DKIM records ` +
        `(pillarbox domain list --data ${data_dir}).`,
    )
  }
  return warnings
}
