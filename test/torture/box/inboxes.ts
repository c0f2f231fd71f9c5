import { type Named, named, type RunningBox } from './world.ts'

/** Identities of a box, each of which is sent one message at a time, so that the last that came is known. */
export class Inboxes {
  readonly #free: Named[]

  private constructor(free: Named[]) {
    this.#free = free
  }

  static async open(box: RunningBox, count: number): Promise<Inboxes> {
    const made = Array.from({ length: count }, async () => named(await box.get('POST', '/v1/identities', {})))
    return new Inboxes(await Promise.all(made))
  }

  /** Runs work with an identity that is free. Throws when there is none. */
  async lend<Result>(work: (inbox: Named) => Promise<Result>): Promise<Result> {
    const inbox = this.#free.pop()
    if (inbox === undefined) throw new Error('no identity is free')
    try {
      return await work(inbox)
    } finally {
      this.#free.push(inbox)
    }
  }
}
