import { setTimeout as sleep } from 'node:timers/promises'
import type { Load, Refusal } from '../box/load.ts'
import type { RunningBox } from '../box/world.ts'
import type { Copy, Destinations } from './destinations.ts'
import type { Follower } from './follower.ts'
import type { Site } from './site.ts'

/** What was done to a site; times are those of performance.now(). */
export interface Disturbance {
  kind: 'killed' | 'cut off' | 'suspended' | 'primary killed'
  /** The box; undefined where it was the database. */
  box: number | undefined
  from: number
  /** When it was over: the box began to start again, reached the database or was resumed, or the standby was promoted. */
  to: number
}

/** Milliseconds after which a box that is cut off may not send any more, and before which no other box takes up its work. */
const lost = 20_000

/** Milliseconds within which what was accepted arrives, whatever was done. */
const goesOnWithin = 40_000

/** Milliseconds between the arrival of a message and the COMMIT of its result, at most; and by which clocks and timers of a busy machine are late. */
const recording = 6000
const late = 1500

/** Milliseconds after which a box that was suspended knows what it has missed, with its next beat (docs/decisions/0036-runs-of-boxes.md). */
const nextBeat = 6000

/** Codes of answers while there is no database, or no box, that can take a call: it may be repeated. */
const putOff = /"code":"(?:storage_unavailable|storage_unsure|storage_busy|restarting|idempotency_in_flight)"/

/** What boxes answered that they did not promise: one sentence each. */
export function faultsOfRefusals(refusals: readonly Refusal[]): string[] {
  return refusals
    .filter(({ write, status, answer }) => (write.kind === 'mail' ? status !== 451 && status !== 421 : !putOff.test(answer)))
    .map(({ write, status, answer }) => `${write.name} was answered with ${status}: ${answer}`)
}

/** Messages that were sent again without the box having ended, or too early for it to have stopped. */
export function faultsOfCopies(destinations: Destinations, disturbances: readonly Disturbance[]): string[] {
  const faults: string[] = []
  for (const copies of Map.groupBy(destinations.sent, ({ id }) => id).values())
    for (const [index, next] of copies.slice(1).entries()) {
      const before = copies[index]!
      if (!disturbances.some((disturbance) => explains(disturbance, before, next)))
        faults.push(
          `${next.id} was sent by box ${next.box}, ${seconds(next.at - before.at)} after box ${before.box} had sent it: ${around(before, disturbances)}`,
        )
    }
  return faults
}

/** Whether a message may be sent again after this: nobody knew that it had arrived, and who had sent it sent nothing any more. */
function explains({ kind, box, from, to }: Disturbance, before: Copy, next: Copy): boolean {
  if (kind === 'primary killed') return before.at > from - recording && before.at < to + recording
  if (kind === 'suspended' && next.box === box && next.at >= to && next.at <= to + nextBeat) return true
  if (before.box !== box || before.at < from - recording) return false
  if (kind === 'killed') return next.at > from
  if (before.at > Math.min(from + lost, to) + late) return false
  return next.box === box ? next.at >= to : next.at >= from + lost
}

/** What a box sent while it could not know whether another does. */
export function faultsOfSilence(destinations: Destinations, disturbances: readonly Disturbance[]): string[] {
  return disturbances
    .filter(({ kind }) => kind === 'cut off')
    .flatMap(({ box, from, to }) =>
      destinations.sent
        .filter((copy) => copy.box === box && copy.at > from + lost + late && copy.at < to)
        .map(({ id, at }) => `box ${box} sent ${id} ${seconds(at - from)} after it was cut off from the database`),
    )
}

/** What arrived too late. */
export function faultsOfDelay(site: Site, load: Load, disturbances: readonly Disturbance[]): string[] {
  const faults: string[] = []
  const look = (what: string, accepted: number, arrived: number | undefined): void => {
    // what never arrives is told otherwise
    if (arrived === undefined) return
    const since = Math.max(accepted, ...disturbances.map(({ from }) => from).filter((from) => from < arrived))
    if (arrived - since > goesOnWithin)
      faults.push(`${what} ${seconds(arrived - since)} after it was accepted, or its delivery was disturbed`)
  }
  const { arrivals, told, sent } = site.destinations
  const ids = new Map(sent.map(({ id, raw }) => [/^Subject: (\S+)/m.exec(raw)?.[1] ?? '', id]))
  for (const { kind, name, acknowledged } of load.writes) {
    if (acknowledged === undefined) continue
    if (kind === 'send') look(`${name} arrived`, acknowledged.mark, arrivals.get(ids.get(name) ?? ''))
    if (kind === 'identity') look(`a webhook was told of ${name}`, acknowledged.mark, told.get(acknowledged.id))
  }
  return faults
}

/** The log has a place for each event, without a gap. */
export async function faultsOfLog({ database }: Site): Promise<string[]> {
  const [row] = await database.run(
    'site',
    'SELECT count(*)::int AS count, min(seq)::int AS first, max(seq)::int AS last FROM events',
  )
  const { count, first, last } = row as { count: number; first: number; last: number }
  return first === 1 && last === count ? [] : [`the log has ${count} events from ${first} to ${last}`]
}

/** The client that followed was sent the log: each event once, in its order. */
export async function faultsOfFollower(box: RunningBox, follower: Follower): Promise<string[]> {
  const { first } = follower
  if (first === undefined) return ['no WebSocket was opened']
  const logged = (await box.list(`/v1/events?since=${first}`)).map(({ id }) => String(id))
  for (const end = Date.now() + 20_000; follower.heard.length < logged.length && Date.now() < end;) await sleep(50)
  await sleep(100)
  const { heard } = follower
  const faults: string[] = []
  const [all, known] = [new Set(logged), new Set(heard)]
  for (const id of logged.filter((one) => !known.has(one))) faults.push(`the WebSocket missed ${id}`)
  // those of the oracle's own calls come later
  for (const id of heard.slice(0, logged.length).filter((one) => !all.has(one)))
    faults.push(`the WebSocket was sent ${id}, which is not in the log`)
  if (known.size < heard.length) faults.push(`the WebSocket was sent ${heard.length - known.size} events twice`)
  if (faults.length === 0 && logged.some((id, index) => heard[index] !== id))
    faults.push('the WebSocket was sent events in another order')
  return faults.slice(0, 5)
}

function around(copy: Copy, disturbances: readonly Disturbance[]): string {
  const near = disturbances.toSorted((one, other) => Math.abs(one.from - copy.at) - Math.abs(other.from - copy.at))[0]
  if (near === undefined) return 'nothing was disturbed'
  const whose = near.box === undefined ? 'the' : `box ${near.box}`
  return `${whose} ${near.kind} ${seconds(near.from - copy.at)} after that, until ${seconds(near.to - copy.at)}`
}

function seconds(milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(1)} s`
}
