import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { certificate } from '../../src/certificates/self-signed.ts'

let made: Promise<string> | undefined

/** Gives a new box a self-signed certificate, as to make one costs much of a start. A box of another host name makes its own. */
export async function lendCertificate(data: string): Promise<void> {
  if (existsSync(data)) return
  const from = await (made ??= make())
  const directory = join(data, 'tls')
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  cpSync(from, directory, { recursive: true })
}

async function make(): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'pillarbox-own-'))
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }))
  await certificate(directory, 'pillarbox.test')
  return directory
}
