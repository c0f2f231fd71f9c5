import { createReadStream } from 'node:fs'
import { constants, lstat, open, readdir } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import type { Command } from 'commander'
import type { Job } from '../jobs/model.ts'
import { type Packable, zip } from '../core/zip/zip.ts'
import { type BoxOptions, identityNamed, ofBox, withBox } from './support/box.ts'
import { Failure } from './support/refuse.ts'
import { resultOf, untilSignal } from './support/job.ts'
import { say } from './support/say.ts'

export function addImportCommand(program: Command): void {
  const command = program
    .command('import <identity> <path>')
    .description(
      'import mail into an identity: an mbox, a maildir, a message (.eml), a directory of these, or an export; may be repeated',
    )
  ofBox(command).action(read)
}

async function read(words: string, path: string, options: BoxOptions): Promise<void> {
  const found = await lstat(path).catch(() => undefined)
  if (!found?.isFile() && !found?.isDirectory()) {
    throw new Failure(found ? `${path} is neither a file nor a directory.` : `${path} does not exist.`, 'no_file', 'path')
  }
  const octets = found.isDirectory() ? zip(filesBelow(path)) : createReadStream(path)
  await withBox(options, (box) =>
    untilSignal(async (signal) => {
      const { id, email } = await identityNamed(box, words)
      const job = await box.send<Job>(`/v1/identities/${id}/import`, octets)
      const result = await resultOf(box, job, signal)
      say(options, { identity_id: id, ...result }, `${email}: ${formatImport(result)}.`)
    }),
  )
}

/** The files of a directory and its subdirectories, by name; symbolic links are skipped. */
async function* filesBelow(root: string, directory = root): AsyncGenerator<Packable> {
  const names = (await readdir(directory, { withFileTypes: true })).toSorted((one, other) => (one.name < other.name ? -1 : 1))
  for (const entry of names) {
    const path = join(directory, entry.name)
    if (entry.isDirectory()) yield* filesBelow(root, path)
    if (!entry.isFile()) continue
    // it may have been replaced by a link meanwhile
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW)
    const { mtimeMs } = await file.stat()
    yield { name: relative(root, path).split(sep).join('/'), modified: mtimeMs, content: file.createReadStream() }
  }
}

const words: [name: string, one: string][] = [
  ['imported', 'e-mails imported'],
  ['sms', 'text messages imported'],
  ['duplicates', 'already present'],
  ['too_large', 'too large'],
  ['header_too_large', 'with too large a header'],
  ['unreadable', 'unreadable'],
  ['not_understood', 'of unknown state'],
  ['ignored', 'ignored'],
]

function formatImport(result: Record<string, unknown>): string {
  return words
    .flatMap(([name, one]) => (result[name] === 0 && name !== 'imported' ? [] : [`${String(result[name])} ${one}`]))
    .join(', ')
}
