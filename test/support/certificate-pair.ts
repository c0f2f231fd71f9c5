import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generate } from 'selfsigned'
import { onTestFinished } from 'vitest'

const day = 86_400_000

/** A certificate for a name, in files of its own; it is valid from and to so many milliseconds from now. */
export async function certificatePair(
  name: string,
  { from = -day, to = 365 * day } = {},
): Promise<{ directory: string; cert: string; key: string }> {
  const directory = mkdtempSync(join(tmpdir(), 'pillarbox-pair-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  const made = await generate([{ name: 'commonName', value: name }], {
    keyType: 'ec',
    curve: 'P-256',
    algorithm: 'sha256',
    notBeforeDate: new Date(Date.now() + from),
    notAfterDate: new Date(Date.now() + to),
    extensions: [{ name: 'subjectAltName', altNames: [{ type: 2, value: name }] }],
  })
  const files = { directory, cert: join(directory, 'cert.pem'), key: join(directory, 'key.pem') }
  writeFileSync(files.cert, made.cert)
  writeFileSync(files.key, made.private, { mode: 0o600 })
  return files
}
