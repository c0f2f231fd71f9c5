import { lruMap, lruMapOfBytes } from '../../core/memory.ts'
import type { Caller } from '../../core/scopes.ts'
import type { Offered } from './model.ts'

/** What a code was issued for. Texts are copies: what was cut from a request keeps all of it in memory. */
export interface IssuedCode {
  client_id: string
  /** How the grant is listed with the keys. */
  label: string
  redirect_uri: string
  challenge: string
  person: Caller
  identity_id: string
  scopes: Offered[]
  /** In milliseconds since the epoch. */
  until: number
}

/** What who brings a code is told: what it was issued for, once, and later the key of the grant that it gave, if it gave one. */
export type TakenCode = { issued: IssuedCode } | { issued?: undefined; key_id: string | undefined }

export interface Codes {
  add(code: string, issued: IssuedCode): Promise<void>
  /** Uses a code up; undefined for an unknown one. */
  take(code: string): Promise<TakenCode | undefined>
  /** Notes the key that a code gave. False when the code has come again meanwhile: the grant must end. */
  settle(code: string, keyId: string | undefined): Promise<boolean>
}

/** Codes of one account, and milliseconds for which they are remembered, so that a second use is noticed. */
export const kept = { ofAccount: 20, lifetime: 600_000 }

/** Bytes of all codes in memory. */
const maxBytes = 4 * 1024 * 1024

interface Entry extends IssuedCode {
  /** Resolves with the key of the grant once the code was used. */
  used?: PromiseWithResolvers<string | undefined>
}

/** The codes of one box, in memory. */
export class OwnCodes implements Codes {
  readonly #codes = lruMapOfBytes<Entry>(maxBytes, sizeOf, kept.lifetime)
  /** The codes of each account, the oldest first. */
  readonly #ofAccounts = lruMap<string[]>(10_000)

  async add(code: string, issued: IssuedCode): Promise<void> {
    const { account_id } = issued.person
    const codes = [...(this.#ofAccounts.get(account_id) ?? []), code]
    for (const former of codes.splice(0, codes.length - kept.ofAccount)) this.#codes.delete(former)
    this.#ofAccounts.set(account_id, codes)
    this.#codes.set(code, issued)
  }

  async take(code: string): Promise<TakenCode | undefined> {
    const entry = this.#codes.get(code)
    if (!entry) return undefined
    if (entry.used) return { key_id: await entry.used.promise }
    entry.used = Promise.withResolvers()
    return { issued: entry }
  }

  async settle(code: string, keyId: string | undefined): Promise<boolean> {
    this.#codes.get(code)?.used?.resolve(keyId)
    return true
  }
}

function sizeOf({ client_id, redirect_uri }: Entry): number {
  return 2048 + 2 * (client_id.length + redirect_uri.length)
}
