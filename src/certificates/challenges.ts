import { chmod, mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { challengePath } from '../http/server/health.ts'
import type { SharedChallenges } from './shared-challenges.ts'

/** The pending http-01 challenge responses. */
export class Challenges {
  readonly #open = new Map<string, string>()
  readonly #webroot: () => string | undefined
  readonly #shared: SharedChallenges | undefined

  /** `webroot` is a directory that another web server serves, if there is one; `shared` has those of several boxes. */
  constructor(webroot: () => string | undefined, shared?: SharedChallenges) {
    this.#webroot = webroot
    this.#shared = shared
  }

  /** The response to a token; undefined for an unknown one. */
  answer(token: string): string | undefined | Promise<string | undefined> {
    return this.#open.get(token) ?? this.#shared?.find(token)
  }

  /** Returns a function that removes it. Throws a sentence when it cannot be published. */
  async post(token: string, text: string): Promise<() => Promise<void>> {
    // it becomes a file name, and comes from outside (RFC 8555 8.1: base64url)
    if (!/^[\w-]{1,200}$/.test(token)) throw new Error('The CA sent an invalid challenge token')
    this.#open.set(token, text)
    const webroot = this.#webroot()
    if (webroot !== undefined) await publish(webroot, token, text)
    await this.#shared?.post(token, text)
    return async () => {
      this.#open.delete(token)
      await this.#shared?.remove(token)
      if (webroot !== undefined) await rm(join(webroot, challengePath, token), { force: true })
    }
  }
}

/** Readable by the web server, whatever our umask; the web root itself must exist. */
async function publish(webroot: string, token: string, text: string): Promise<void> {
  try {
    await folder(join(webroot, '.well-known'))
    await folder(join(webroot, challengePath))
    const file = join(webroot, challengePath, token)
    await writeFile(file, text)
    await chmod(file, 0o644)
  } catch (error) {
    throw new Error(`acme.webroot cannot be written to: ${(error as Error).message}`, { cause: error })
  }
}

async function folder(path: string): Promise<void> {
  try {
    await mkdir(path)
    await chmod(path, 0o755)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}
