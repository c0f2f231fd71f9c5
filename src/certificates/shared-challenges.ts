import { setTimeout as sleep } from 'node:timers/promises'
import { type Clock, hour } from '../core/clock.ts'
import { type Database, sql, type Transaction } from '../store/database.ts'

/** Milliseconds after which every box knows a token, or looks for it in the database (`Caches.valid`). */
const spreading = 600

/** Milliseconds after which a challenge that was left behind is removed. */
const lifetime = hour

/** The open challenges of several boxes: a CA asks any of them. They are no secret: whoever asks for a token is given its answer. */
export class SharedChallenges {
  readonly #database: Database
  readonly #clock: Clock
  #answers: ReadonlyMap<string, string> = new Map()

  constructor({ database, clock }: { database: Database; clock: Clock }) {
    this.#database = database
    this.#clock = clock
    database.caches.onInvalid('challenges', () => this.#load())
  }

  /** Undefined for an unknown token. */
  find(token: string): string | undefined | Promise<string | undefined> {
    return this.#database.caches.valid ? this.#answers.get(token) : this.#read(token)
  }

  /** Resolves when every box answers it. */
  async post(token: string, answer: string): Promise<void> {
    const now = this.#clock.now()
    await this.#change(async (tx) => {
      await tx.run(sql`DELETE FROM acme_challenges WHERE token = ${token} OR posted_at < ${now - lifetime}`)
      await tx.run(sql`INSERT INTO acme_challenges (token, answer, posted_at) VALUES (${token}, ${answer}, ${now})`)
    })
    await sleep(spreading)
  }

  async remove(token: string): Promise<void> {
    await this.#change((tx) => tx.run(sql`DELETE FROM acme_challenges WHERE token = ${token}`))
  }

  async #change(work: (tx: Transaction) => Promise<unknown>): Promise<void> {
    await this.#database.transaction(async (tx) => {
      await work(tx)
      await this.#database.caches.invalidate(tx, 'challenges')
    })
  }

  async #load(): Promise<void> {
    const rows = await this.#database.all<{ token: string; answer: string }>(sql`SELECT token, answer FROM acme_challenges`)
    this.#answers = new Map(rows.map(({ token, answer }) => [token, answer]))
  }

  async #read(token: string): Promise<string | undefined> {
    const found = await this.#database.get<{ answer: string }>(sql`SELECT answer FROM acme_challenges WHERE token = ${token}`)
    return found?.answer
  }
}
