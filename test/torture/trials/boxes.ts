import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { postgresPrograms, type PostgresServer } from '../../support/postgres-server.ts'
import { pick, type Random, randomFrom } from '../../support/random.ts'
import { peer } from '../../support/peer.ts'
import { Load } from '../box/load.ts'
import { faultsOf } from '../box/oracle.ts'
import {
  type Disturbance,
  faultsOfCopies,
  faultsOfDelay,
  faultsOfFollower,
  faultsOfLog,
  faultsOfRefusals,
  faultsOfSilence,
} from '../boxes/checks.ts'
import { Follower } from '../boxes/follower.ts'
import { type Member, Site } from '../boxes/site.ts'
import { SteadyLoad } from '../boxes/steady-load.ts'
import { type Cases, caseSeed, type CaseResult, type Setting, type Trial } from '../trial.ts'

/** Milliseconds after which other boxes have taken up what one had under way: 30 s without a beat, and the next beat of the other. */
const takeover = 36_000

/** Milliseconds within which mail is taken again. */
const takenAgain = 30_000

/** How often a case disturbs, by what it does, which follows from its number. */
const kinds = [
  { times: 10, short: 2, disturb: killBoxes },
  { times: 4, short: 1, disturb: cutBoxesOff },
  { times: 4, short: 1, disturb: killPrimaries },
]

export const boxes: Trial = {
  name: 'boxes',
  about:
    'Two boxes on one database of PostgreSQL, behind HAProxy, under mixed load. Of three cases, one kills boxes (SIGKILL) ten times, and lets the other ' +
    'take over or starts them again; one cuts a box off from the database, or suspends it, four times, mostly longer than the half minute after which the other takes ' +
    'over; one kills the primary of PostgreSQL four times, whose synchronous standby is promoted. What was acknowledged is there, once; what was not answered and ' +
    'is repeated under the same idempotency key is there once; mail and webhooks go on within 40 s; a message is sent again only where the box that ' +
    'had sent it was disturbed before its result was stored, and by another box only after it has stopped; a WebSocket that resumes with `since` is ' +
    'sent each event once, in the order of the log, which has no gap; mail is taken again within 30 s.',
  goal: { tries: 90, unit: 'failures', faults: '0 acknowledged lost, 0 doubled beyond what is promised, 0 that end the service' },
  short: 1,
  hours: 1,
  broken: {
    'early-answer': {
      what: 'mail is acknowledged before it is stored',
      file: 'src/mail/inbox.ts',
      find: 'return await store()',
      replace: "setTimeout(() => void store().catch(() => undefined), 30)\n      return ['']",
    },
    'early-takeover': {
      what: 'what a box has under way is taken up by others before it has stopped',
      file: 'src/store/postgres/heartbeat.ts',
      find: 'ended: 30_000 }',
      replace: 'ended: 9000 }',
    },
    'late-stop': {
      what: 'a box that is cut off from the database goes on with what it has under way',
      file: 'src/store/postgres/heartbeat.ts',
      find: 'lost: 20_000,',
      replace: 'lost: 120_000,',
    },
    'unforced-commit': {
      what: 'no commit waits for the disk and the standby',
      file: 'src/store/postgres/connections.ts',
      find: 'Object.entries(session)',
      replace: "Object.entries({ ...session, synchronous_commit: 'off' })",
    },
  },
  missing: () => {
    if (postgresPrograms() === undefined) return 'PostgreSQL is not installed (apt-get install postgresql)'
    return haproxy() === undefined ? 'HAProxy is not installed (apt-get install haproxy)' : undefined
  },
  async open({ directory, program, seed, short = false }: Setting): Promise<Cases> {
    const counted = new Counted()
    return {
      run: (number) => runCase({ directory, program, short, counted }, number, randomFrom(caseSeed(seed, number))),
      notes: () => counted.notes,
      close: async () => undefined,
    }
  },
}

/** A site under load, and what was done to it so far. */
interface Trying {
  site: Site
  load: Load
  steady: SteadyLoad
  random: Random
  disturbances: Disturbance[]
  faults: string[]
}

async function runCase(
  { directory, program, short, counted }: { directory: string; program: string; short: boolean; counted: Counted },
  number: number,
  random: Random,
): Promise<CaseResult> {
  const place = join(directory, `case-${number}`)
  mkdirSync(place)
  const kind = kinds[number % kinds.length]!
  const times = short ? kind.short : kind.times
  const site = await Site.open({ directory: place, program, balancer: haproxy()!, random })
  let follower: Follower | undefined
  try {
    follower = new Follower(site.front.api)
    const load = new Load(random, site.furnished, () => performance.now())
    const steady = new SteadyLoad(load, site.front)
    const trying: Trying = { site, load, steady, random, disturbances: [], faults: steady.faults }
    await steady.burst(500)
    await kind.disturb(trying, times)
    steady.calm()
    await sleep(1000)
    await steady.stop()
    const faults = [...trying.faults, ...(await settle(trying, follower))]
    counted.add(trying, follower)
    await follower.stop()
    faults.push(...(await site.stop()), ...(await faultsOfLog(site)))
    return { tries: times, faults }
  } finally {
    await follower?.stop()
    await site.close()
    rmSync(place, { recursive: true, force: true })
  }
}

/** Compares the site with all that it had acknowledged. */
async function settle({ site, load, disturbances }: Trying, follower: Follower): Promise<string[]> {
  const { destinations, furnished, front, members } = site
  // a call of a box that has ended is in flight until its run has ended
  const inFlight = (): boolean => load.refusals.some(({ answer }) => answer.includes('idempotency_in_flight'))
  const faults: string[] = []
  for (const end = performance.now() + takeover + 5000; ; await sleep(1000)) {
    faults.push(...faultsOfRefusals(load.refusals.splice(0)))
    await load.repeat(front)
    if (!inFlight()) break
    if (performance.now() < end) continue
    faults.push(...load.refusals.map(({ write, answer }) => `${write.name} is still answered with ${answer}`))
    break
  }
  faults.push(...faultsOfRefusals(load.refusals.splice(0)))
  const box = members[0]!.running!
  faults.push(...(await faultsOf(box, { world: { furnished, peers: destinations }, load, starts: 1 + disturbances.length })))
  faults.push(...(await faultsOfFollower(box, follower)))
  faults.push(...faultsOfCopies(destinations, disturbances), ...faultsOfSilence(destinations, disturbances))
  faults.push(...faultsOfDelay(site, load, disturbances))
  return faults
}

/** Kills boxes under load: some are started again at once, others when what they had under way was taken up. */
async function killBoxes(trying: Trying, times: number): Promise<void> {
  const { site, steady, random, disturbances } = trying
  for (let time = 0; time < times; time++) {
    const member = pick(site.members, random)
    await steady.burst(300 + random(700))
    const killed: Disturbance = { kind: 'killed', box: member.number, from: performance.now(), to: Infinity }
    disturbances.push(killed)
    await member.running!.process.end('SIGKILL')
    steady.calm()
    // one of five is not started again before the other box has taken up its work
    await sleep(time % 5 === 3 ? takeover : random(4000))
    killed.to = performance.now()
    await site.start(member)
    // it is among those that HAProxy chooses from
    await sleep(2500)
    await mustBeTaken(trying, killed)
  }
}

/** Cuts a box off from the database, or suspends it. */
async function cutBoxesOff(trying: Trying, times: number): Promise<void> {
  const { site, steady, random, disturbances } = trying
  for (let time = 0; time < times; time++) {
    const member = pick(site.members, random)
    const kind = pick(['cut off', 'cut off', 'suspended'] as const, random)
    const length = random(5) === 0 ? random(20_000) : takeover + random(4000)
    site.destinations.slow = member.number
    await steady.burst(1000 + random(1000))
    const cut: Disturbance = { kind, box: member.number, from: performance.now(), to: Infinity }
    disturbances.push(cut)
    if (kind === 'cut off') member.database.block()
    else member.running!.process.child.kill('SIGSTOP')
    steady.calm()
    await sleep(length)
    site.destinations.slow = undefined
    if (kind === 'cut off') member.database.unblock()
    else member.running!.process.child.kill('SIGCONT')
    cut.to = performance.now()
    await mustBeBack(trying, member, cut)
  }
}

/** Kills the primary of PostgreSQL, and promotes its standby. */
async function killPrimaries(trying: Trying, times: number): Promise<void> {
  const { site, steady, random, disturbances } = trying
  for (let time = 0; time < times; time++) {
    const standby: PostgresServer = await site.database.standby()
    try {
      await site.database.synchronize()
    } catch (error) {
      await standby.close()
      throw error
    }
    await steady.burst(500 + random(1000))
    const killed: Disturbance = { kind: 'primary killed', box: undefined, from: performance.now(), to: Infinity }
    disturbances.push(killed)
    await site.failOver(standby, pick(['first', 'all'] as const, random), 300 + random(3000))
    killed.to = performance.now()
    steady.calm()
    await mustBeTaken(trying, killed)
    await sleep(1000)
  }
}

/** Waits until mail and calls are acknowledged again. */
async function mustBeTaken({ load, faults }: Trying, { kind, from, to }: Disturbance): Promise<void> {
  const isTaken = (mail: boolean): boolean =>
    load.writes.some((write) => (write.kind === 'mail') === mail && (write.acknowledged?.mark ?? 0) > to)
  while (!isTaken(true) || !isTaken(false)) {
    if (performance.now() - from > 90_000) {
      faults.push(`nothing is taken a minute and a half after ${kind}`)
      return
    }
    await sleep(50)
  }
  const first = load.writes.filter((write) => write.kind === 'mail').map((write) => write.acknowledged?.mark ?? 0)
  const after = Math.min(...first.filter((mark) => mark > from)) - from
  if (after <= takenAgain) return
  const over = ((to - from) / 1000).toFixed(1)
  faults.push(`mail was taken again ${(after / 1000).toFixed(1)} s after ${kind}, which was over after ${over} s`)
}

/** Waits until a box answers and sends again after it was cut off. */
async function mustBeBack({ site, faults, steady }: Trying, member: Member, { kind, to }: Disturbance): Promise<void> {
  const box = member.running!
  const sends = (): boolean => site.destinations.sent.some((copy) => copy.box === member.number && copy.at > to)
  const send = { to: 'back@far0.test', subject: 'back', body_text: 'back' }
  let answers = false
  for (const end = performance.now() + 60_000; !answers || !sends(); await sleep(500)) {
    answers = (await box.ask('POST', `/v1/identities/${site.furnished.writer.id}/emails`, send))?.status === 201 || answers
    if (performance.now() < end) continue
    faults.push(`box ${member.number} ${answers ? 'sends nothing' : 'does not answer'} a minute after it was ${kind}`)
    break
  }
  steady.calm()
}

/** Numbers that say how hard it was tried, and how it went. */
class Counted {
  #acknowledged = 0
  #sent = 0
  #again = 0
  #resumed = 0
  readonly #longest = new Map<Disturbance['kind'], number>()

  add({ load, site, disturbances }: Trying, follower: Follower): void {
    const { sent, arrivals } = site.destinations
    this.#acknowledged += load.acknowledged
    this.#sent += arrivals.size
    this.#again += sent.length - arrivals.size
    this.#resumed += follower.resumed
    const marks = load.writes.flatMap(({ kind, acknowledged }) => (kind === 'mail' && acknowledged ? [acknowledged.mark] : []))
    marks.sort((one, other) => one - other)
    for (const { kind, from } of disturbances) {
      const next = marks.find((mark) => mark > from + 100) ?? from
      const gap = Math.max(
        next - from,
        ...marks.map((mark, index) =>
          mark > from && mark < from + 40_000 ? mark - Math.max(from, marks[index - 1] ?? from) : 0,
        ),
      )
      this.#longest.set(kind, Math.max(gap, this.#longest.get(kind) ?? 0))
    }
  }

  get notes(): string[] {
    return [
      `${this.#acknowledged} writes were acknowledged, and ${this.#sent} messages sent, ${this.#again} of them again; WebSockets resumed ${this.#resumed} times`,
      ...[...this.#longest].map(
        ([kind, gap]) => `the longest time without an accepted mail after ${kind}: ${(gap / 1000).toFixed(1)} s`,
      ),
    ]
  }
}

function haproxy(): string | undefined {
  return peer('haproxy')
}
