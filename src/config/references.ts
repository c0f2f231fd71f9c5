import { X509Certificate, createPrivateKey } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { attempt } from '../core/fault.ts'
import type { Assignment } from './environment.ts'
import type { Draft } from './draft.ts'
import { type ConfigProblem, unreadable } from './problems.ts'
import { besidePath, read, type Setting } from './settings.ts'

/** The secrets that systemd passes (`LoadCredential=pillarbox.bootstrap_key:…`, systemd.exec(5)). */
export async function readCredentials(
  settings: readonly Setting[],
  env: Record<string, string | undefined>,
): Promise<{ assignments: Assignment[]; problems: ConfigProblem[] }> {
  const directory = env['CREDENTIALS_DIRECTORY']
  const assignments: Assignment[] = []
  const problems: ConfigProblem[] = []
  for (const setting of directory ? settings.filter(({ secret }) => secret) : []) {
    const source = `$CREDENTIALS_DIRECTORY/pillarbox.${setting.name}`
    try {
      const value = await readSecret(join(directory ?? '', `pillarbox.${setting.name}`))
      assignments.push({ setting, from_file: false, value, place: { source } })
    } catch (error) {
      if (!missing(error)) problems.push({ source, message: unreadable(error) })
    }
  }
  return { assignments, problems }
}

/** Puts each secret that is named by a `<name>_file` setting in its place. */
export async function readSecretFiles(settings: readonly Setting[], cwd: string, draft: Draft): Promise<void> {
  for (const setting of settings.filter(({ secret }) => secret)) {
    const beside = besidePath(setting)
    const file = read(draft.tree, beside)
    if (file === undefined) continue
    const place = draft.place(beside, 'value')
    if (read(draft.tree, setting.path) !== undefined) {
      draft.problems.push({ ...place, message: `is set together with ${setting.name}, set only one of the two` })
    } else if (typeof file !== 'string' || file === '') {
      draft.problems.push({ ...place, message: 'must be the path of a file that contains the secret' })
    } else {
      await readSecret(resolve(cwd, file)).then(
        (value) => draft.assign(setting.path, value, place),
        (error: unknown) => draft.problems.push({ ...place, message: `${resolve(cwd, file)} ${unreadable(error)}` }),
      )
    }
    draft.forget(beside)
  }
}

/** Makes the paths that settings hold absolute; a file that is named must be there, and a key must fit its certificate. */
export async function readNamedFiles(settings: readonly Setting[], cwd: string, draft: Draft): Promise<void> {
  const contents = new Map<string, string>()
  for (const setting of settings.filter(({ names }) => names !== undefined)) {
    const given = read(draft.tree, setting.path) ?? setting.fallback
    if (typeof given !== 'string' || given === '') continue
    const path = resolve(cwd, given)
    const place = draft.place(setting.path, 'value')
    draft.set(setting.path, path)
    if (setting.names === 'directory') {
      const entry = await stat(path).catch(() => undefined)
      if (entry && !entry.isDirectory()) draft.problems.push({ ...place, message: `${path} is a file, must be a directory` })
      continue
    }
    await readFile(path, 'utf8').then(
      (text) => contents.set(setting.name, text),
      (error: unknown) => draft.problems.push({ ...place, message: `${path} ${unreadable(error)}` }),
    )
  }
  for (const setting of settings) {
    const fault = pemFault(setting, contents)
    if (fault) draft.problems.push({ ...draft.place(setting.path, 'value'), message: fault })
  }
}

function pemFault({ path, name }: Setting, contents: Map<string, string>): string | undefined {
  const text = contents.get(name)
  if (text === undefined) return undefined
  if (path.at(-1) === 'cert' || path.at(-1) === 'ca_file')
    return attempt(() => new X509Certificate(text)) ? undefined : 'must be a certificate in PEM form'
  if (path.at(-1) !== 'key') return undefined
  const key = attempt(() => createPrivateKey(text))
  if (!key) return 'must be a private key in PEM form, without a passphrase'
  const certificate = attempt(() => new X509Certificate(contents.get([...path.slice(0, -1), 'cert'].join('.')) ?? ''))
  return certificate && !certificate.checkPrivateKey(key) ? 'must be the private key of the certificate' : undefined
}

// Editors and `echo` end a file with a newline that is not part of the secret.
async function readSecret(path: string): Promise<string> {
  return (await readFile(path, 'utf8')).replace(/\r?\n$/, '')
}

function missing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}
