import type { Clock } from '../core/clock.ts'
import { iso } from '../core/clock.ts'
import { Fault } from '../core/fault.ts'
import type { Caller } from '../core/scopes.ts'
import { mac, sameBytes } from '../core/seal.ts'

/** How long a URL opens unless said, in milliseconds. */
const quarter = 15 * 60_000

/** URLs that open one attachment, or another file, without a key, for a quarter of an hour or as long as the file is kept. */
export class SignedUrls {
  readonly #key: Buffer
  readonly #clock: Clock
  readonly #publicUrl: () => string

  constructor(parts: { key: Buffer; clock: Clock; publicUrl: () => string }) {
    this.#key = parts.key
    this.#clock = parts.clock
    this.#publicUrl = parts.publicUrl
  }

  /** `place` is the path below which it is opened. It opens no longer than the key of the caller, if that expires. */
  sign(
    { until }: Pick<Caller, 'until'>,
    emailId: string,
    index: number,
    { place = 'attachments', lifetime = quarter } = {},
  ): { url: string; expires_at: string } {
    const expires = Math.min(Math.ceil((this.#clock.now() + lifetime) / 1000), Math.floor(until / 1000))
    const signature = this.#signature(emailId, index, expires).toString('base64url')
    const url = `${this.#publicUrl()}/v1/${place}/${emailId}/${index}?expires=${expires}&signature=${signature}`
    return { url, expires_at: iso(expires * 1000) }
  }

  /** Throws Fault forbidden for a URL that this box did not sign, was changed, or has expired. */
  verify(emailId: string, index: number, expires: number, signature: string): void {
    const given = Buffer.from(signature, 'base64url')
    const same = given.toString('base64url') === signature && sameBytes(given, this.#signature(emailId, index, expires))
    if (!same) throw new Fault('forbidden', 'This URL was not signed by this box, or was changed.', { code: 'bad_signature' })
    if (expires * 1000 <= this.#clock.now()) {
      throw new Fault('forbidden', 'This URL has expired; ask for a new one.', { code: 'url_expired' })
    }
  }

  #signature(emailId: string, index: number, expires: number): Buffer {
    return mac(this.#key, `v1|${emailId}|${index}|${expires}`)
  }
}
