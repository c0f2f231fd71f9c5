import { rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Random, randomFrom } from '../../support/random.ts'
import { Load, type Refusal } from '../box/load.ts'
import { faultsInBackup, faultsOf, faultsOfDrafts, faultsOnDisk } from '../box/oracle.ts'
import { type RunningBox, started, World } from '../box/world.ts'
import { compilePreload, noPreload, preloadEnv } from '../disk/preload.ts'
import { type Cases, caseSeed, type CaseResult, type Setting, type Trial } from '../trial.ts'

/** Kills of the box of one case. */
const lives = 4

export const kills: Trial = {
  name: 'kills',
  about:
    'A box under mixed load (mail in by SMTP, identities, outgoing mail, one-time passwords, card reveals, metadata, deletions, webhooks, backups) is ' +
    'ended by SIGKILL at a random moment: under load, while it starts, or while it stops. Started again, it has all that it acknowledged, once; what was ' +
    'not answered and is repeated under the same idempotency key is there once; each message arrives with the same bytes, at most once for each start; the ' +
    'database and its backups verify.',
  goal: { tries: 1000, unit: 'kills', faults: '0 acknowledged lost, 0 doubled beyond what is promised, 0 half-made' },
  short: 4,
  broken: {
    'early-answer': {
      what: 'mail is acknowledged before it is stored',
      file: 'src/mail/inbox.ts',
      find: 'return await store()',
      replace: "setTimeout(() => void store().catch(() => undefined), 30)\n      return ['']",
    },
    'repeated-call': {
      what: 'a call that had changed something when the box was killed is made again',
      file: 'src/http/idempotency.ts',
      find: '(status = 0 AND ${interrupted})',
      replace: '(status < 2 AND ${interrupted})',
    },
  },
  async open({ directory, program, seed }: Setting): Promise<Cases> {
    const library = noPreload() === undefined ? compilePreload(directory) : undefined
    const world = await World.open(directory, program, randomFrom(seed))
    return {
      run: (number) => runCase(world, { number, library }, randomFrom(caseSeed(seed, number))),
      close: () => world.close(),
    }
  },
}

async function runCase(
  world: World,
  { number, library }: { number: number; library: string | undefined },
  random: Random,
): Promise<CaseResult> {
  const home = world.home(`case-${number}`)
  // on a slow disk more is between a write and its answer
  const syncDelay = random(3) * 4000
  const env = library === undefined ? {} : preloadEnv(library, home, { syncDelay })
  world.peers.begin(() => 0)
  const load = new Load(random, world.furnished)
  let box: RunningBox | undefined
  let starts = 0
  try {
    for (let life = 0; life < lives; life++) {
      starts += 1
      const process = world.begin(home, env)
      if (life > 0 && random(4) === 0) {
        // killed while it starts
        await Promise.race([process.said('started'), sleep(random(1500))])
        await process.end('SIGKILL')
        continue
      }
      box = await started(process)
      if (life > 0) await load.repeat(box)
      await underLoad(box, load, random)
    }
    starts += 1
    box = await world.start(home)
    await load.repeat(box)
    const faults = await faultsOf(box, { world, load, starts })
    for (const { write, status, answer } of load.refusals) faults.push(`${write.name} was answered with ${status}: ${answer}`)
    if (random(4) === 0) faults.push(...(await faultsInBackup(world, home)))
    const status = await box.process.end('SIGTERM')
    if (status !== 0) faults.push(`the box ended with ${status}`)
    faults.push(...(await faultsOnDisk(world, home)), ...(await faultsOfDrafts(home)))
    return { tries: lives, faults }
  } finally {
    await box?.process.end('SIGKILL')
    rmSync(home, { recursive: true, force: true })
  }
}

/** Lets a box work for a moment, and kills it. */
async function underLoad(box: RunningBox, load: Load, random: Random): Promise<void> {
  const before = load.acknowledged
  const running = load.begin(box)
  const backup = random(2) === 0 ? load.backup(box) : undefined
  while (load.acknowledged === before) await sleep(2)
  await sleep(random(400))
  // some are killed while they stop, and put off what they are asked meanwhile
  const refused = load.refusals.length
  const stops = random(5) === 0
  if (stops) {
    box.process.child.kill('SIGTERM')
    await sleep(random(60))
  }
  await box.process.end('SIGKILL')
  running.stop()
  await running.ended
  await backup
  if (stops) load.refusals.push(...load.refusals.splice(refused).filter((refusal) => !isPutOff(refusal)))
}

/** Whether it is the answer of a box that stops. */
function isPutOff({ write, status, answer }: Refusal): boolean {
  return write.kind === 'mail' ? status === 421 : answer.includes('"code":"restarting"')
}
