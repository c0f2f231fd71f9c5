/** When the next domain is to be looked at: a box with nothing to do asks its store nothing. */
export class Agenda {
  // what was written down before the start is not known yet
  #soonest = -Infinity

  /** Something is to be done at this time (milliseconds), or earlier. */
  by(time: number): void {
    this.#soonest = Math.min(this.#soonest, time)
  }

  isDue(now: number): boolean {
    return this.#soonest <= now
  }

  /** Before all that is due is looked for: what is noted meanwhile stays. */
  clear(): void {
    this.#soonest = Infinity
  }
}
