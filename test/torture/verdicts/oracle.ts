import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { Answering } from '../../support/answering.ts'
import type { Try } from './try.ts'

// Debian's packages are those of its own Python and Perl
const [python, perl] = ['/usr/bin/python3', '/usr/bin/perl']

export interface Judgement {
  result: string
  reason: string
}

/** What the second implementation says of a try. */
export interface Opinion {
  /** By pyspf (RFC 7208). */
  spf: Judgement
  /** By dkimpy, in the order of the fields. */
  dkim: Judgement[]
  /** Why dkimpy could not read the header. */
  dkim_error: string | null
  arc: Judgement
  /**
   * By authheaders (RFC 7489), by the tree walk of RFC 9989, by that where domains that have a public suffix in common alone are not aligned, and the
   * author's domain as Python reads it. `tree`: the tree and the list of public suffixes differ on the domains, or on where the record is.
   */
  dmarc: Judgement & { walk: string; below: string; author: string | null; tree: boolean }
}

/** What Mail::DKIM says where dkimpy and the box differ; a signature is known by its `b=`. */
export interface Arbitration {
  dkim: (Judgement & { b: string })[]
  arc: Judgement
}

/** Why there are no other implementations on this machine; undefined where there are. */
export function missingOracle(): string | undefined {
  const modules = spawnSync(python, ['-c', 'import dkim, nacl.signing, spf, authheaders, publicsuffix2'])
  if (modules.status !== 0)
    return 'dkimpy, pyspf or authheaders is not installed (apt-get install python3-dkim python3-nacl python3-spf python3-authheaders)'
  const { status } = spawnSync(perl, ['-MMail::DKIM::ARC::Verifier', '-e', '1'])
  return status === 0 ? undefined : 'Mail::DKIM is not installed (apt-get install libmail-dkim-perl)'
}

/** pyspf, dkimpy and authheaders in one process, Mail::DKIM in another. */
export class Oracle {
  readonly #python = new Answering<Opinion>(python, ['-W', 'ignore', scriptAt('oracle.py')])
  readonly #perl = new Answering<Arbitration>(perl, [scriptAt('oracle.pl')])

  /** By pyspf, dkimpy and authheaders, the last for the sender and the signers that passed. */
  async judge({ raw, envelope, zone }: Try, sender: string | null, signers: string[]): Promise<Opinion> {
    const { remote_address: ip, helo, mail_from } = envelope
    return this.#python.ask({ ip, helo, mail_from, zone, sender, signers, raw: raw.toString('base64') })
  }

  /** By Mail::DKIM. */
  async arbitrate({ raw, zone }: Try): Promise<Arbitration> {
    const keys = Object.entries(zone)
      .filter(([name]) => name.includes('._domainkey.'))
      .map(([name, { TXT, error }]) => [name, error === true ? 0 : TXT?.[0]])
    return this.#perl.ask({ raw: raw.toString('base64'), keys: Object.fromEntries(keys) as unknown })
  }

  close(): void {
    this.#python.close()
    this.#perl.close()
  }
}

function scriptAt(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url))
}
