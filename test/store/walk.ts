import { expect, vi } from 'vitest'
import { Statements } from '../../src/store/sqlite/statements.ts'
import { SqliteThread } from '../../src/store/sqlite/thread.ts'
import { Asking } from '../contract/asking.ts'
import type { Inhabited } from '../contract/inhabited.ts'
import { deliver, message } from '../support/appliance.ts'

/** The statements of a walk, each once. */
export interface Walked {
  /** Those of the connections of the event loop. */
  prepared: string[]
  /** Those that a thread ran. */
  slow: string[]
}

/** Calls every route as documented, sends mail that answers other mail, and runs every job; returns the statements of all that. */
export async function walk(world: Inhabited): Promise<Walked> {
  const prepared = vi.spyOn(Statements.prototype, 'prepare')
  const slow = vi.spyOn(SqliteThread.prototype, 'read')
  await goRound(world)
  return { prepared: once(prepared.mock.calls), slow: once(slow.mock.calls) }
}

function once(calls: readonly (readonly [text: string, ...rest: unknown[]])[]): string[] {
  return [...new Set(calls.map(([text]) => text.replaceAll(/\s+/g, ' ').trim()))]
}

async function goRound(world: Inhabited): Promise<void> {
  const { box } = world
  const asking = new Asking(world)
  const estate = await world.settle('every kind /domains/identities/:id')
  const { body: identity } = await box.call('GET', `/v1/identities/${estate.objects['identities/:id']}`)
  for (const fields of [
    { Subject: 'Question', 'Message-ID': '<1@far.test>' },
    {
      Subject: 'Re: Question',
      'Message-ID': '<2@far.test>',
      'In-Reply-To': '<1@far.test>',
      References: '<0@far.test> <1@far.test>',
    },
  ]) {
    expect(await deliver(box.smtp, { to: identity.email, raw: message(fields, 'Hello\n') })).toMatch(/^250 /)
  }
  const order = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
  const all = asking.spellings.toSorted(
    (one, other) => order.indexOf(one.method) - order.indexOf(other.method) || partsOf(other) - partsOf(one),
  )
  const heard = new Set<string>()
  for (const spelling of all) {
    const { path, question } = await asking.good(spelling, estate)
    const { status } = await asking.ask(spelling, path, question)
    if (status < 400) heard.add(`${spelling.method} ${spelling.path}`)
  }
  expect(heard.size).toBeGreaterThan(all.length - 15)
  await box.settled()
  for (const job of box.app.jobs) await job.run()
}

function partsOf({ path }: { path: string }): number {
  return path.split('/').length
}
