import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { type Box, startBox } from '../box.ts'
import { startNameServer } from '../dns.ts'
import { type Bench, finding, type Finding } from '../finding.ts'
import { inTurn, type Sample, shown, spreadOf, warmUp } from '../measure.ts'
import { senderZone } from '../messages.ts'
import { startBareKoa } from '../peers/koa.ts'
import { openStore, seedIdentities } from '../seed.ts'
import { slowDisk } from '../slow-disk.ts'
import { ask, warmUpRounds, connections, side } from './calls.ts'

const few = 100
const many = 100_000

const create = { path: '/v1/identities', body: '{}' }

/** The creation of identities, each on disk before it is answered (P11): on the usual disk, on a slow one, and in a box that has many. */
export const creates: Bench = {
  name: 'creates',
  goals: ['P11'],
  async run({ directory, rounds, scale }) {
    const seconds = Math.max(1, Math.round(5 * scale))
    await using ending = new AsyncDisposableStack()
    mkdirSync(join(directory, 'dns'))
    const dns = await startNameServer(join(directory, 'dns'), senderZone)
    ending.defer(() => dns.stop())
    const start = async (name: string, identities: number, env: Record<string, string> = {}): Promise<Box> => {
      const data = join(directory, name)
      const store = await openStore(data)
      await seedIdentities(store, 'seeded', identities)
      await store.close()
      const box = await startBox({ directory: data, dns: dns.address, env })
      ending.defer(() => box.stop())
      return box
    }
    const against = async (box: Box, env: Record<string, string> = {}): Promise<Map<string, Sample[]>> => {
      const koa = await startBareKoa(directory, { created: await ask(box.url + create.path, create.body) }, env)
      try {
        const sides = [side('box', box, create, seconds), side('bare Koa', koa, create, seconds)]
        await warmUp(sides[0]!, warmUpRounds)
        return await inTurn(sides, rounds)
      } finally {
        koa.stop()
      }
    }
    const usual = await start('usual', few)
    const slow = slowDisk(directory, 1)
    return [
      judge('on disk', 1.2, await against(usual)),
      judge('on a disk whose fsync takes 1 ms longer', 3, await against(await start('slow', few, slow), slow)),
      await growth(await start('few', few), await start('many', Math.round(many * scale)), seconds, rounds),
    ]
  },
}

function judge(where: string, least: number, samples: Map<string, Sample[]>): Finding {
  const of = (name: string, figure: string) => spreadOf(samples.get(name), figure)
  const said = (name: string): string => `${shown(of(name, 'calls/s'))} calls/s, ${shown(of(name, 'µs CPU/call'))} µs CPU a call`
  return finding({
    goal: 'P11',
    what: `Create an identity, ${where}, ${connections} connections`,
    against: 'bare Koa, one insert and fsync a call',
    value: of('box', 'calls/s').median / of('bare Koa', 'calls/s').median,
    least,
    figures: [`box ${said('box')}`, `bare ${said('bare Koa')}`],
  })
}

async function growth(small: Box, large: Box, seconds: number, rounds: number): Promise<Finding> {
  const sides = [side('few', small, create, seconds), side('many', large, create, seconds)]
  for (const each of sides) await warmUp(each, warmUpRounds)
  const samples = await inTurn(sides, rounds)
  const of = (name: string) => spreadOf(samples.get(name), 'µs CPU/call')
  return finding({
    goal: 'P11',
    what: `CPU of creating an identity in a box of ${many.toLocaleString('en')}`,
    against: `the same in a box of ${few}`,
    value: of('many').median / of('few').median,
    most: 1.1,
    figures: [`${many.toLocaleString('en')}: ${shown(of('many'))} µs`, `${few}: ${shown(of('few'))} µs`],
  })
}
