import { createHash, randomBytes } from 'node:crypto'
import { sameBytes, type Seal } from '../../core/seal/seal.ts'
import { type Reader, sql, type Transaction } from '../../store/database.ts'
import { factorOf, type LoginRow } from './logins.ts'

/** The defaults of authenticator apps (RFC 6238, 30 s steps). */
const recipe = { algorithm: 'SHA1', digits: 6, period: 30 } as const

/** The code at a time in milliseconds (RFC 6238). */
export type CodeAt = (secret: Uint8Array, how: typeof recipe, now: number) => string

/** Characters of base32 (RFC 4648 6). */
const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

const step = recipe.period * 1000

/** TOTP codes of a login and its recovery codes; each is accepted once. */
export class SecondFactor {
  readonly #seal: Seal
  readonly #codeAt: CodeAt

  constructor(seal: Seal, codeAt: CodeAt) {
    this.#seal = seal
    this.#codeAt = codeAt
  }

  /** A new unconfirmed secret in base32 and new recovery codes; they replace the previous ones. */
  async begin(tx: Transaction, { id }: LoginRow): Promise<{ secret: string; recovery_codes: string[] }> {
    const secret = randomBytes(20)
    const recovery_codes = Array.from({ length: 10 }, recoveryCode)
    await this.clear(tx, id)
    const sealed = this.#seal.seal(secret, factorOf(id))
    await tx.run(sql`UPDATE logins SET second_factor = ${sealed} WHERE id = ${id}`)
    for (const code of recovery_codes) {
      await tx.run(sql`INSERT INTO recovery_codes (person_id, hash) VALUES (${id}, ${hashOf(code)})`)
    }
    return { secret: base32(secret), recovery_codes }
  }

  /** Accepts a code of the current time step, or of the one before or after, if it is later than any accepted before. */
  async takeCode(tx: Transaction, login: LoginRow, code: string, now: number): Promise<boolean> {
    if (!login.second_factor) return false
    const secret = this.#seal.open(login.second_factor, factorOf(login.id))
    const given = Buffer.from(plain(code))
    const steps = [-1, 0, 1].map((offset) => Math.floor(now / step) + offset)
    const fitting = steps.filter((one) => sameBytes(Buffer.from(this.#codeAt(secret, recipe, one * step)), given))
    const taken = fitting.find((one) => one > login.last_step)
    if (taken === undefined) return false
    const { changes } = await tx.run(sql`UPDATE logins SET last_step = ${taken} WHERE id = ${login.id} AND last_step < ${taken}`)
    return changes === 1
  }

  /** Accepts a code of the app, or a recovery code that was not used before, and marks it used. */
  async takeAnyCode(tx: Transaction, login: LoginRow, code: string, now: number): Promise<boolean> {
    if (isAppCode(code)) return this.takeCode(tx, login, code, now)
    const { changes } = await tx.run(sql`DELETE FROM recovery_codes WHERE person_id = ${login.id} AND hash = ${hashOf(code)}`)
    return changes === 1
  }

  /** True if this is an unused recovery code of the person; it stays unused. */
  async holdsRecoveryCode(reader: Reader, personId: string, code: string): Promise<boolean> {
    const row = await reader.get(sql`SELECT 1 FROM recovery_codes JOIN logins ON logins.id = recovery_codes.person_id
      WHERE recovery_codes.person_id = ${personId} AND hash = ${hashOf(code)} AND confirmed_at IS NOT NULL`)
    return row !== undefined
  }

  async confirm(tx: Transaction, personId: string, at: string): Promise<void> {
    await tx.run(sql`UPDATE logins SET confirmed_at = ${at} WHERE id = ${personId}`)
  }

  async clear(tx: Transaction, personId: string): Promise<void> {
    await tx.run(sql`UPDATE logins SET second_factor = NULL, confirmed_at = NULL, last_step = 0 WHERE id = ${personId}`)
    await tx.run(sql`DELETE FROM recovery_codes WHERE person_id = ${personId}`)
  }
}

/** True if a text has the form of an app code and not of a recovery code. */
export function isAppCode(code: string): boolean {
  return /^\d{6}$/.test(plain(code))
}

/** The key URI of authenticator apps. */
export function keyUri(email: string, secret: string): string {
  const { algorithm, digits, period } = recipe
  const query = new URLSearchParams({ secret, issuer, algorithm, digits: String(digits), period: String(period) })
  return `otpauth://totp/${issuer}:${encodeURIComponent(email)}?${query.toString()}`
}

const issuer = 'Pillarbox'

/** 80 random bits, to be typed from paper. */
function recoveryCode(): string {
  const text = base32(randomBytes(10)).toLowerCase()
  return text.match(/.{4}/g)!.join('-')
}

/** Removes spaces and dashes that people add. */
function plain(code: string): string {
  return code.replaceAll(/[\s-]/g, '').toLowerCase()
}

function hashOf(code: string): string {
  return createHash('sha256').update(plain(code)).digest('base64url')
}

/** Encodes a multiple of five bytes. */
function base32(bytes: Buffer): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  return bits
    .match(/.{5}/g)!
    .map((five) => alphabet[Number.parseInt(five, 2)])
    .join('')
}
