import { setTimeout as sleep } from 'node:timers/promises'
import type { Load } from '../box/load.ts'
import type { RunningBox } from '../box/world.ts'

/** Clients that go on whatever is answered, as long as nobody stops them. */
export class SteadyLoad {
  readonly faults: string[] = []
  /** Milliseconds of a client from an answer to its next write. */
  pause = defaultPause
  readonly #load: Load
  readonly #box: RunningBox
  readonly #running: Promise<unknown>
  #stopped = false

  constructor(load: Load, box: RunningBox, clients = 4) {
    this.#load = load
    this.#box = box
    this.#running = Promise.all(Array.from({ length: clients }, () => this.#client()))
  }

  /** Writes as fast as it can for a while, until something was acknowledged. */
  async burst(milliseconds: number): Promise<void> {
    const before = this.#load.acknowledged
    this.pause = 0
    await sleep(milliseconds)
    for (const end = Date.now() + 30_000; this.#load.acknowledged === before && Date.now() < end;) await sleep(2)
  }

  calm(): void {
    this.pause = defaultPause
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await this.#running
  }

  async #client(): Promise<void> {
    while (!this.#stopped) {
      const one = this.#load.begin(this.#box, 1)
      one.stop()
      await one.ended.catch((error: unknown) => void this.faults.push((error as Error).message))
      await sleep(this.pause)
    }
  }
}

const defaultPause = 400
