import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { declared } from '../../../src/commands/docs/docs.ts'
import type { AnyRoute } from '../../../src/http/route.ts'
import {
  type Estates,
  type Habitable,
  inhabitedBy,
  type Inhabited,
  manyCalls,
  person,
  settleEstates,
} from '../../contract/inhabited.ts'
import { plantedLink } from '../../contract/planted-people.ts'
import { type Answer, call } from '../../support/appliance.ts'
import { openStore, type Store } from '../../support/open-store.ts'
import { apiKey, type RunningBox, type World } from './world.ts'

/** A box of its own process on which people live. */
export interface InhabitedBox extends Omit<Inhabited<Habitable>, 'close'> {
  running: RunningBox
  /** Ends the box. */
  close(): Promise<void>
}

/** The home of a box that was settled and stopped, from which each start begins anew. */
export class InhabitedHome {
  readonly #world: World
  readonly #home: string
  readonly #settled: string
  readonly #routes: readonly AnyRoute[]
  readonly #estates: Estates

  private constructor(world: World, at: { home: string; settled: string }, routes: readonly AnyRoute[], estates: Estates) {
    this.#world = world
    this.#home = at.home
    this.#settled = at.settled
    this.#routes = routes
    this.#estates = estates
  }

  /** Settles a box, and what `more` says besides. */
  static async open<More>(
    world: World,
    more: (inhabited: InhabitedBox) => Promise<More>,
  ): Promise<{ home: InhabitedHome; more: More }> {
    const routes = await declared((app) => app.routes)
    const home = world.home('inhabited')
    const settled = `${home}-settled`
    const first = await started(world, home)
    let inhabited: InhabitedBox
    let besides: More
    try {
      await setPassword(first.box, first.database)
      const estates = await settleEstates(first.box, first.database)
      inhabited = inhabitedOf(first, routes, estates)
      besides = await more(inhabited)
    } finally {
      await first.close('SIGTERM')
    }
    cpSync(home, settled, { recursive: true })
    const { own, sibling, foreign } = inhabited
    return { home: new InhabitedHome(world, { home, settled }, routes, { own, sibling, foreign }), more: besides }
  }

  get routes(): readonly AnyRoute[] {
    return this.#routes
  }

  /** Starts the box as it was settled, without what was done since. */
  async start(): Promise<InhabitedBox> {
    rmSync(this.#home, { recursive: true, force: true })
    cpSync(this.#settled, this.#home, { recursive: true })
    return inhabitedOf(await started(this.#world, this.#home), this.#routes, this.#estates)
  }
}

interface Started {
  box: Habitable
  running: RunningBox
  database: Store
  close(signal: NodeJS.Signals): Promise<void>
}

function inhabitedOf(begun: Started, routes: readonly AnyRoute[], estates: Estates): InhabitedBox {
  const { box, running, database } = begun
  return { ...inhabitedBy(estates, { box, database, routes }), running, close: () => begun.close('SIGKILL') }
}

async function started(world: World, home: string): Promise<Started> {
  const running = await world.start(home, { ...manyCalls, PILLARBOX_SMS__PROVIDER: 'loopback' })
  const database = openStore(join(home, 'data', 'pillarbox.db'), { timeout: 60_000 })
  const box: Habitable = {
    url: running.api,
    key: apiKey,
    smtp: running.smtp,
    dns: world.peers.dns,
    directory: home,
    call: (method, path, body, options = {}) => call(box, method, path, body, options),
    settled: () => jobsEnd(database),
  }
  return {
    box,
    running,
    database,
    async close(signal) {
      database.close()
      await running.process.end(signal)
    },
  }
}

/** The person of the operator's account, by a link as an operator makes it. */
async function setPassword(box: Habitable, database: Store): Promise<void> {
  const { account_id } = database.prepare('SELECT account_id FROM api_keys').get() as { account_id: string }
  const token = await plantedLink(join(box.directory, 'data', 'pillarbox.db'), account_id)
  const set = (): Promise<Answer> =>
    box.call<unknown>('POST', '/v1/setup', { ...person, token }, { key: null, headers: { Origin: box.url } })
  // it is seen with the next commit of the box at the latest
  for (let tries = 0; tries < 100; tries += 1) {
    if ((await set()).status === 200) return
    await sleep(20)
  }
  throw new Error(`The password was not set: ${JSON.stringify(await set())}`)
}

async function jobsEnd(database: Store): Promise<void> {
  const open = database.prepare("SELECT count(*) AS n FROM jobs WHERE status NOT IN ('done', 'failed', 'cancelled')")
  for (let tries = 0; (open.get() as { n: number }).n > 0; tries += 1) {
    if (tries === 1000) throw new Error('A job does not end.')
    await sleep(10)
  }
}
