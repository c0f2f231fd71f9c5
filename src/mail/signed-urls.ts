import type { Holders } from '../account/holders.ts'
import type { Clock } from '../core/clock.ts'
import { iso } from '../core/clock.ts'
import { Fault } from '../core/fault.ts'
import type { Caller } from '../core/scopes.ts'
import { mac, sameBytes } from '../core/seal.ts'
import type { SignedQuery } from '../core/shapes.ts'

/** How long a URL opens unless said, in milliseconds. */
const quarter = 15 * 60_000

/** URLs that open one attachment, or another file, without a key, for a quarter of an hour or as long as the file is kept. */
export class SignedUrls {
  readonly #key: Buffer
  readonly #clock: Clock
  readonly #publicUrl: () => string
  readonly #holders: Pick<Holders, 'holder'>

  constructor(parts: { key: Buffer; clock: Clock; publicUrl: () => string; holders: Pick<Holders, 'holder'> }) {
    this.#key = parts.key
    this.#clock = parts.clock
    this.#publicUrl = parts.publicUrl
    this.#holders = parts.holders
  }

  /**
   * `place` is the path below which it is opened. It opens no longer than the caller's key and the secret of it live; with `by` null only no
   * longer than until they expire, for what is ended otherwise when the key is revoked.
   */
  sign(
    { until, key_id, secret }: Pick<Caller, 'until' | 'key_id' | 'secret'>,
    emailId: string,
    index: number,
    {
      place = 'attachments',
      lifetime = quarter,
      by = key_id && `${key_id}.${secret}`,
    }: { place?: string; lifetime?: number; by?: string | null } = {},
  ): { url: string; expires_at: string } {
    const expires = Math.min(Math.ceil((this.#clock.now() + lifetime) / 1000), Math.floor(until / 1000))
    const signature = this.#signature(emailId, index, expires, by).toString('base64url')
    const maker = by === null ? '' : `&by=${by}`
    const url = `${this.#publicUrl()}/v1/${place}/${emailId}/${index}?expires=${expires}${maker}&signature=${signature}`
    return { url, expires_at: iso(expires * 1000) }
  }

  /** Throws Fault forbidden for a URL that this box did not sign, was changed, has expired, or was signed for a key, or a secret of one, that has ended. */
  async verify(emailId: string, index: number, { expires, by, signature }: SignedQuery): Promise<void> {
    const given = Buffer.from(signature, 'base64url')
    const same =
      given.toString('base64url') === signature && sameBytes(given, this.#signature(emailId, index, expires, by ?? null))
    if (!same) throw new Fault('forbidden', 'This URL was not signed by this box, or was changed.', { code: 'bad_signature' })
    if (expires * 1000 <= this.#clock.now()) {
      throw new Fault('forbidden', 'This URL has expired; ask for a new one.', { code: 'url_expired' })
    }
    if (by === undefined) return
    const [id = '', secret] = by.split('.')
    if (!(await this.#holders.holder(id, Number(secret)))) {
      throw new Fault('forbidden', 'The key that asked for this URL, or its secret, has ended; ask for a new one with another.', {
        code: 'url_ended',
      })
    }
  }

  #signature(emailId: string, index: number, expires: number, by: string | null): Buffer {
    return mac(this.#key, `v1|${emailId}|${index}|${expires}${by === null ? '' : `|${by}`}`)
  }
}
