import { lruMapOfBytes } from '../core/memory.ts'
import { readHeaders, type WebhookRow } from './row.ts'
import { type Sealed, signingKey, type WebhookKey } from './signature.ts'

type Closed = Pick<WebhookRow, 'id' | 'headers' | 'secret' | 'previous_secret'>

/** The decrypted columns of a webhook. */
interface Contents {
  headers: Record<string, string>
  key: WebhookKey
  previous: WebhookKey | null
}

interface Cached {
  from: Closed
  contents: Contents
}

/** The most bytes of cached webhooks. */
const maxCached = 16 * 1024 * 1024

/** Caches decrypted columns. An entry is valid only for the same encrypted bytes, so changes need no invalidation. */
export class SecretCache {
  readonly #sealed: Sealed
  readonly #cache = lruMapOfBytes<Cached>(maxCached, sizeOf)

  constructor(sealed: Sealed) {
    this.#sealed = sealed
  }

  of(row: Closed): Contents {
    const known = this.#cache.get(row.id)
    if (known && alike(known.from, row)) return known.contents
    const { id, headers, secret, previous_secret } = row
    const previous = previous_secret === null ? null : signingKey(this.#sealed.read(id, previous_secret))
    const contents = { headers: readHeaders(row, this.#sealed), key: signingKey(this.#sealed.read(id, secret)), previous }
    this.#cache.set(id, { from: { id, headers, secret, previous_secret }, contents })
    return contents
  }
}

/** The headers are kept encrypted and decrypted, as strings of two bytes a character at most. */
function sizeOf({ from }: Cached): number {
  return 1024 + 4 * (from.headers?.length ?? 0)
}

function alike(one: Closed, other: Closed): boolean {
  return same(one.secret, other.secret) && same(one.previous_secret, other.previous_secret) && same(one.headers, other.headers)
}

function same(one: Uint8Array | null, other: Uint8Array | null): boolean {
  return one === null || other === null ? one === other : Buffer.compare(one, other) === 0
}
