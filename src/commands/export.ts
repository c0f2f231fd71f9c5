import { existsSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import type { Command } from 'commander'
import type { Job } from '../jobs/model.ts'
import { type BoxOptions, identityNamed, ofBox, withBox } from './support/box.ts'
import { Failure } from './support/refuse.ts'
import { resultOf, untilSignal } from './support/job.ts'
import { say } from './support/say.ts'

interface Options extends BoxOptions {
  force?: boolean
  format: string
}

export function addExportCommand(program: Command): void {
  const format = program.createOption('--format <format>', 'format of the messages').choices(['mbox', 'eml']).default('mbox')
  const command = program
    .command('export <identity> <file>')
    .description('export an identity (by id, address or name) into a ZIP, without secrets')
    .addOption(format)
    .option('--force', 'overwrite an existing file')
  ofBox(command).action(write)
}

async function write(words: string, file: string, options: Options): Promise<void> {
  if (existsSync(file) && !options.force)
    throw new Failure(`${file} exists already: specify another name, or --force.`, 'file_exists', 'file')
  await withBox(options, (box) =>
    untilSignal(async (signal) => {
      const { id, email } = await identityNamed(box, words)
      const job = await box.call<Job>('POST', `/v1/identities/${id}/export`, { format: options.format })
      const { url, ...result } = await resultOf(box, job, signal)
      const { pathname, search } = new URL(String(url))
      const part = `${file}.part`
      await rm(part, { force: true })
      try {
        await box.save(`${pathname}${search}`, part)
        await rename(part, file)
      } finally {
        await rm(part, { force: true })
        await box.call('DELETE', `/v1/jobs/${job.id}`)
      }
      const { expires_at: _, ...counts } = result
      say(
        options,
        { file, identity_id: id, ...counts },
        `${file} contains ${email}: ${String(counts['messages'])} e-mails, ${String(counts['sms'])} text messages.`,
      )
    }),
  )
}
