import { hour, minute } from '../../../src/core/clock.ts'
import { card } from '../../support/card.ts'
import { type Random, randomFrom } from '../../support/random.ts'
import { type Answer, named, type Named, type RunningBox, World } from '../box/world.ts'
import { burst, type Call } from '../http/burst.ts'
import { type Cases, caseSeed, type Setting, type Trial } from '../trial.ts'

/** Reveals of a case that are sent at once, before a restart and after it: of whole cases, and of those of the short form. */
const [atOnceWhole, atOnceShort] = [10_000, 500]

/** Calls beyond what is left that are sent at once. */
const beyond = 200

export const budgets: Trial = {
  name: 'budgets',
  about:
    'Ten thousand reveals of one card are sent at once, each with an amount of its own: eight on each of 1,250 connections, all written before the first answer is ' +
    'read. While they are answered the box ends by SIGKILL, and is started again; then ten thousand more are sent at once, most of them long after the budget ' +
    'is spent. What is spent of the card is the sum of what was allowed, each reveal was allowed exactly when its amount was left, who was answered was ' +
    'answered what the ledger has, and who was not is there once at most. In the same way messages are sent at the limit of an identity ' +
    '(`outbound.rate_per_identity`) and at the end of a plan, with a restart between them, and calls are made at the `rate_limit` of a key: as many are ' +
    'accepted as are left, and of the calls those besides that the limit gives back meanwhile, mostly none.',
  goal: { tries: 1_000_000, unit: 'reveals', faults: 'exact each time' },
  short: 1000,
  hours: 0.3,
  broken: {
    'unbounded-reserve': {
      what: 'the budget is not checked where the amount is reserved',
      file: 'src/cards/reveals.ts',
      find: 'const within = amount === null ? empty : sql` AND ${spent} <= budget_cents`',
      replace: 'const within = empty',
    },
    'early-read': {
      what: 'the budget is checked against what was read before the transaction that reserves the amount',
      file: 'src/cards/reveals.ts',
      find: `const outcome = await database.transaction<Outcome>(async (tx) => {
      const now = clock.now()
      const before = await rowOf(tx, clock, caller, id)
      const amount_cents = input.amount_cents ?? null
      const purpose = input.purpose ?? null
      const entry = { type: 'reveal', amount_cents, purpose } as const
      const verdict = isWithin(before, amount_cents, now) ? await this.#judge(tx, caller, before, entry, now) : undefined
      if (verdict !== undefined && verdict !== 'policy_refused') return verdict
      const open = verdict === undefined ? await this.#reserve(tx, id, amount_cents, now) : undefined`,
      replace: `const before = await database.transaction((tx) => rowOf(tx, clock, caller, id))
    const outcome = await database.transaction<Outcome>(async (tx) => {
      const now = clock.now()
      const amount_cents = input.amount_cents ?? null
      const purpose = input.purpose ?? null
      const entry = { type: 'reveal', amount_cents, purpose } as const
      const within = isWithin(before, amount_cents, now)
      if (within) await tx.run(sql\`UPDATE cards SET spent_cents = spent_cents + \${amount_cents} WHERE id = \${id}\`)
      const open = within ? await this.#reserve(tx, id, null, now) : undefined
      const verdict = undefined`,
    },
    'late-ledger': {
      what: 'the ledger has a reveal only some time after its answer',
      file: 'src/cards/ledger.ts',
      find: '    return row!\n  }\n\n  find(',
      replace: `    await tx.run(sql\`DELETE FROM card_transactions WHERE id = \${row!.id}\`)
    const late = (later: Transaction) =>
      later.run(
        sql\`INSERT INTO card_transactions (id, card_id, type, amount_cents, allowed, key_id, ip, user_agent, purpose, spent_cents, round, created_at)
          VALUES (\${row!.id}, \${card.id}, \${type}, \${amount_cents}, \${Number(allowed)}, \${key_id}, \${ip}, \${user_agent}, \${purpose}, \${spent_cents},
            \${round}, \${iso(now)})\`,
      )
    tx.afterCommit(() => setTimeout(() => void this.#deps.database.transaction(late), 100))
    return row!
  }

  find(`,
    },
    'early-count': {
      what: 'a plan lets through one more than it says',
      file: 'src/accounts/plan.ts',
      find: 'if (used + more > limit) throw',
      replace: 'if (used + more > limit + 1) throw',
    },
    'unchecked-count': {
      what: 'the rate of an identity is checked before the transaction that counts a message, and not in it',
      file: 'src/outbound/compose/limits.ts',
      find: 'await this.require(tx, load)\n',
      replace: '',
    },
    'early-call': {
      what: 'the rate limit of a key lets through one more than it says',
      file: 'src/http/rate.ts',
      find: 'const admitted = bucket.tokens >= 1',
      replace: 'const admitted = bucket.tokens >= 0',
    },
  },
  async open({ directory, program, seed, short }: Setting): Promise<Cases> {
    const world = await World.open(directory, program, randomFrom(seed))
    const reveals = short ? atOnceShort : atOnceWhole
    let [unanswered, stored] = [0, 0]
    return {
      async run(number) {
        const one = new BudgetCase(world, reveals, randomFrom(caseSeed(seed, number)))
        const faults = await one.faults()
        unanswered += one.unanswered
        stored += one.stored
        // of those without an answer the others never arrived
        return { tries: 2 * reveals - one.unanswered + one.stored, faults }
      },
      notes: () => [`${unanswered} reveals had no answer when the box was killed, and ${stored} of them are in the ledger`],
      close: () => world.close(),
    }
  },
}

class BudgetCase {
  readonly #world: World
  readonly #reveals: number
  readonly #random: Random
  /** Reveals without an answer, and those of them that the ledger has. */
  unanswered = 0
  stored = 0

  constructor(world: World, reveals: number, random: Random) {
    this.#world = world
    this.#reveals = reveals
    this.#random = random
  }

  async faults(): Promise<string[]> {
    const random = this.#random
    const half = this.#reveals
    const rate = 2 + random(40)
    const [before, left, calls] = [random(rate + 1), 1 + random(rate - 1), 1 + random(40)]
    const home = this.#world.home('box')
    const env = {
      PILLARBOX_LIMITS__EMAILS_SENT: String(rate + left),
      PILLARBOX_OUTBOUND__RATE_PER_IDENTITY: String(rate),
      PILLARBOX_OUTBOUND__RATE_PER_DOMAIN: '0',
      PILLARBOX_HTTP__MAX_CONNECTIONS: '2000',
    }
    this.#world.peers.begin(() => 0)
    const { writer, inbox } = this.#world.furnished
    const faults: string[] = []
    const began = hourOfNow()
    const first = await this.#world.start(home, env)
    let spends: SpentCard
    let other: Named
    try {
      spends = await SpentCard.store(first, inbox, 2 * half, random)
      other = named(await first.get('POST', '/v1/identities', { name: 'Other' }))
      faults.push(...(await faultsOfSending(first, { from: writer, to: inbox, calls: before, left: before, code: 'send_rate' })))
      await spends.reveal(first, [0, half], 1 + random(half - 1))
      await first.process.end('SIGKILL')
    } finally {
      await first.process.end('SIGKILL')
    }
    const second = await this.#world.start(home, env)
    try {
      await spends.reveal(second, [half, 2 * half])
      faults.push(...(await spends.faults(second, half)))
      this.unanswered = spends.unanswered
      this.stored = spends.stored
      const toRate = { from: writer, to: inbox, calls: rate - before + beyond, left: rate - before, code: 'send_rate' }
      const toPlan = { from: other, to: inbox, calls: left + beyond, left, code: 'plan_limit_reached' }
      const ofSending = [...(await faultsOfSending(second, toRate)), ...(await faultsOfSending(second, toPlan))]
      // in another hour an identity may send again
      if (hourOfNow() === began) faults.push(...ofSending)
      faults.push(...(await faultsOfCalls(second, calls)))
      await second.process.end('SIGTERM')
    } finally {
      await second.process.end('SIGKILL')
    }
    return faults
  }
}

/** A card with a budget, and how each of its reveals was answered. */
class SpentCard {
  readonly #id: string
  readonly #budget: number
  readonly #amounts: readonly number[]
  readonly #answers: (Answer | undefined)[] = []
  unanswered = 0
  stored = 0

  private constructor(id: string, budget: number, amounts: readonly number[]) {
    this.#id = id
    this.#budget = budget
    this.#amounts = amounts
  }

  /** Of some the budget is spent at once, of some it lasts until after the restart, of few to the end. */
  static async store(box: RunningBox, { id: identity }: Named, reveals: number, random: Random): Promise<SpentCard> {
    const largest = 1 + random(500)
    const amounts = Array.from({ length: reveals }, () => 1 + random(largest))
    const all = amounts.reduce((sum, amount) => sum + amount, 0)
    const budget = random(2) === 0 ? random(1000) : random(Math.ceil(all * 1.1))
    const { id } = await box.get('POST', `/v1/identities/${identity}/cards`, card({ budget_cents: budget }))
    return new SpentCard(String(id), budget, amounts)
  }

  /** Reveals the card from one number of a reveal up to another, at once; where `until` is given, the box is killed when so many were answered. */
  async reveal(box: RunningBox, [from, to]: [number, number], until = Infinity): Promise<void> {
    const path = `/v1/cards/${this.#id}/reveal`
    const calls = this.#amounts
      .slice(from, to)
      .map((amount, index): Call => ({ method: 'POST', path, body: { amount_cents: amount, purpose: String(from + index) } }))
    const heard = (count: number): void => void (count >= until && box.process.child.kill('SIGKILL'))
    this.#answers.push(...(await burst(box.api, calls, until === Infinity ? {} : { heard })))
  }

  /** What is wrong; only the reveals before `mayBeLost` may have no answer. */
  async faults(box: RunningBox, mayBeLost: number): Promise<string[]> {
    const faults: string[] = []
    const rows = (await box.list(`/v1/cards/${this.#id}/transactions`)).toReversed()
    let spent = 0
    for (const row of rows) {
      const amount = Number(row['amount_cents'])
      const fits = spent + amount <= this.#budget
      if (row['allowed'] !== fits) faults.push(`${amount} of ${this.#budget - spent} left was ${fits ? 'refused' : 'allowed'}`)
      if (row['allowed'] === true) spent += amount
      if (row['spent_cents'] !== spent) faults.push(`${String(row['spent_cents'])} are spent after a transaction, not ${spent}`)
    }
    const limits = await box.get('GET', `/v1/cards/${this.#id}/limits`)
    if (limits['spent_cents'] !== spent) faults.push(`${String(limits['spent_cents'])} are spent, and ${spent} were allowed`)
    const byPurpose = Map.groupBy(rows, (row) => String(row['purpose']))
    for (const [number, amount] of this.#amounts.entries()) {
      const [row, ...others] = byPurpose.get(String(number)) ?? []
      const answer = this.#answers[number]
      byPurpose.delete(String(number))
      if (others.length > 0) faults.push(`reveal ${number} is in the ledger ${others.length + 1} times`)
      if (answer === undefined) {
        this.unanswered += 1
        if (row) this.stored += 1
        if (number >= mayBeLost) faults.push(`reveal ${number} was not answered`)
        if (row === undefined) continue
      }
      const status = row?.['allowed'] === true ? 200 : 403
      if (row?.['amount_cents'] !== amount || (answer !== undefined && answer.status !== status))
        faults.push(`reveal ${number} was answered with ${answer?.status}, and the ledger has ${JSON.stringify(row)}`)
      else if (answer?.status === 200 && answer.body['transaction']?.id !== row['id'])
        faults.push(`reveal ${number} was answered with ${answer.body['transaction']?.id}, and the ledger has ${row['id']}`)
    }
    if (byPurpose.size > 0)
      faults.push(`the ledger has reveals that nobody asked for: ${[...byPurpose.keys()].slice(0, 5).join(', ')}`)
    return faults
  }
}

interface Sending {
  from: Named
  to: Named
  calls: number
  left: number
  /** Of the refusals. */
  code: string
}

/** Sends messages at once, where a limit has some left. */
async function faultsOfSending(box: RunningBox, { from, to, calls, left, code }: Sending): Promise<string[]> {
  const call: Call = {
    method: 'POST',
    path: `/v1/identities/${from.id}/emails`,
    body: { to: to.email, body_text: 'Hello' },
  }
  const answers = await burst(
    box.api,
    Array.from({ length: calls }, () => call),
  )
  return faultsOf(answers, { accepted: 201, least: left, most: left, code })
}

/** Makes calls at once with a key that may make some in a minute. */
async function faultsOfCalls(box: RunningBox, left: number): Promise<string[]> {
  const { key } = await box.get('POST', '/v1/api-keys', { scopes: ['identities:read'], rate_limit: left })
  const calls = Array.from({ length: left + beyond }, () => ({ method: 'GET', path: '/v1/whoami' }))
  const began = performance.now()
  const answers = await burst(box.api, calls, { key: String(key) })
  const givenBack = Math.floor(((performance.now() - began) * left) / minute)
  return faultsOf(answers, { accepted: 200, least: left, most: left + givenBack, code: 'rate_limited' })
}

function faultsOf(
  answers: readonly (Answer | undefined)[],
  { accepted, least, most, code }: { accepted: number; least: number; most: number; code: string },
): string[] {
  const count = answers.filter((answer) => answer?.status === accepted).length
  const others = answers.filter((answer) => answer?.status !== accepted && codeOf(answer) !== code)
  return [
    ...(count >= least && count <= most ? [] : [`${count} calls were accepted where ${least} were left, before ${code}`]),
    ...others.slice(0, 5).map((answer) => `a call was answered with ${answer?.status} ${JSON.stringify(answer?.body)}`),
  ]
}

/** The code of an error; its type where it has none. */
function codeOf(answer: Answer | undefined): unknown {
  const error = answer?.body['error']
  return error?.code ?? error?.type
}

function hourOfNow(): number {
  return Math.floor(Date.now() / hour)
}
