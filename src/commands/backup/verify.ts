import type { Command } from 'commander'
import { type VerifiedBackup, verifyBackup } from '../../ops/backup/verify.ts'
import { declared } from '../docs/docs.ts'
import { passphraseIn } from '../../ops/backup/key-files.ts'
import { say, withJson } from '../support/say.ts'
import { untilSignal } from '../support/job.ts'

interface Options {
  json?: boolean
  passphraseFile?: string
  masterKey?: string
  scratch?: string
}

export function addVerifyCommand(program: Command): void {
  const command = program
    .command('verify <file>')
    .description('verify a backup: every checksum, its database page by page, every message in it')
    .option('--passphrase-file <file>', 'decrypt its keys, and verify encrypted values with them')
    .option('--master-key <file>', 'verify encrypted values with a master key that is stored elsewhere')
    .option('--scratch <directory>', 'directory for the unpacked database (default: beside the backup)')
  withJson(command).action(async (file: string, { passphraseFile, masterKey, scratch, ...options }: Options) => {
    process.umask(0o077)
    const input = {
      file,
      passphrase: passphraseIn(passphraseFile),
      master_key: masterKey,
      scratch,
      columns: () => declared(({ sealed }) => sealed),
    }
    const verified = await untilSignal((signal) => verifyBackup(input, signal))
    const { manifest, ...rest } = verified
    say(options, { ...rest, ...manifest, keys: verified.keys, sealed_values: verified.sealed }, formatVerified(verified))
  })
}

const aboutKeys = {
  'left out': 'It contains no keys: keep master.key elsewhere.',
  'not opened': 'It contains the encrypted keys; to check that they can be decrypted, add --passphrase-file.',
  opened: 'The master key decrypts all encrypted values',
}

function formatVerified({ file, manifest, blobs, audit_rows, keys, sealed }: VerifiedBackup): string {
  const { created_at, program_version, database_version, rows } = manifest
  const count = Object.values(rows).reduce((sum, one) => sum + one, 0)
  const key = keys === 'opened' ? `${aboutKeys.opened} (${sealed} values).` : aboutKeys[keys]
  const { audit: head } = manifest
  const audit = head ? `The audit log is unchanged: ${audit_rows} rows, the last is ${head.seq} (${head.hash}).\n` : ''
  return (
    `${file} is valid: the box as of ${created_at}, by Pillarbox ${program_version} (database version ${database_version}).\n` +
    `${count} rows in ${Object.keys(rows).length} tables, ${blobs} messages and other contents, each with the right checksum.\n${audit}${key}`
  )
}
