import { card } from '../../support/card.ts'
import { pick, type Random, randomFrom } from '../../support/random.ts'
import { atOnce } from '../box/at-once.ts'
import { type Answered, type RunningBox, World } from '../box/world.ts'
import { type Cases, caseSeed, type CaseResult, type Setting, type Trial } from '../trial.ts'

/** Reveals of one card, cards that are revealed at once in a case, and calls that are open at once. */
const [revealsOfCard, cardsOfCase, clients] = [1000, 20, 40]

export const budgets: Trial = {
  name: 'budgets',
  about:
    'Many clients at once reveal cards, each time with an amount of its own, until long after their budgets are spent; half way the box ends, by SIGTERM or ' +
    'SIGKILL, and is started again. What is spent of each card is the sum of what was allowed, each reveal was allowed exactly when its amount was left, and each ' +
    'client was answered what the ledger has. Some messages are sent before that restart, and after it many are sent at once at the end of a plan: as many are ' +
    'accepted as the plan has left.',
  goal: { tries: 1_000_000, unit: 'reveals', faults: 'exact each time' },
  short: 1000,
  broken: {
    'unbounded-reserve': {
      what: 'the budget is not checked where the amount is reserved',
      file: 'src/cards/reveals.ts',
      find: 'const within = amount === null ? empty : sql` AND ${spent} <= budget_cents`',
      replace: 'const within = empty',
    },
    'early-count': {
      what: 'a plan lets through one more than it says',
      file: 'src/accounts/plan.ts',
      find: 'if (used + more > limit) throw',
      replace: 'if (used + more > limit + 1) throw',
    },
  },
  async open({ directory, program, seed, short }: Setting): Promise<Cases> {
    const world = await World.open(directory, program, randomFrom(seed))
    return {
      async run(number) {
        const ofCase = caseSeed(seed, number)
        const cards = Array.from(
          { length: short ? 1 : cardsOfCase },
          (_, index) => new RevealedCard(randomFrom(caseSeed(ofCase, index))),
        )
        const faults = await faultsOfCase(world, cards, randomFrom(ofCase))
        return { tries: cards.length * revealsOfCard, faults }
      },
      close: () => world.close(),
    }
  },
}

async function faultsOfCase(world: World, cards: RevealedCard[], random: Random): Promise<string[]> {
  const most = 1 + random(40)
  const before = random(most + 1)
  const home = world.home('box')
  const env = {
    PILLARBOX_LIMITS__EMAILS_SENT: String(most),
    PILLARBOX_OUTBOUND__RATE_PER_IDENTITY: '0',
    PILLARBOX_OUTBOUND__RATE_PER_DOMAIN: '0',
  }
  world.peers.begin(() => 0)
  const half = revealsOfCard / 2
  const first = await world.start(home, env)
  const faults: string[] = []
  try {
    await Promise.all(cards.map((one) => one.store(first, world)))
    await reveal(first, cards, [0, half])
    faults.push(...(await faultsOfPlan(first, world, { calls: before, left: before })))
    await first.process.end(pick(['SIGTERM', 'SIGKILL'], random))
  } finally {
    await first.process.end('SIGKILL')
  }
  const second = await world.start(home, env)
  try {
    await reveal(second, cards, [half, revealsOfCard])
    for (const one of cards) faults.push(...(await one.faults(second)))
    faults.push(...(await faultsOfPlan(second, world, { calls: most - before + 20, left: most - before })))
    await second.process.end('SIGTERM')
  } finally {
    await second.process.end('SIGKILL')
  }
  return faults
}

/** Reveals all cards in turns, from one number of a reveal up to another. */
async function reveal(box: RunningBox, cards: RevealedCard[], [from, to]: [number, number]): Promise<void> {
  const numbers = Array.from({ length: to - from }, (_, index) => from + index)
  await atOnce(
    clients,
    numbers.flatMap((number) => cards.map((one) => () => one.reveal(box, number))),
  )
}

/** A card with a budget, and how each of its reveals was answered. */
class RevealedCard {
  readonly #budget: number
  readonly #amounts: number[]
  readonly #statuses: (number | undefined)[] = []
  #id = ''

  constructor(random: Random) {
    this.#budget = random(2) === 0 ? random(1000) : 1000 + random(100_000)
    const largest = 1 + random(500)
    this.#amounts = Array.from({ length: revealsOfCard }, () => 1 + random(largest))
  }

  async store(box: RunningBox, { furnished }: World): Promise<void> {
    const path = `/v1/identities/${furnished.inbox.id}/cards`
    const { id } = await box.get('POST', path, card({ budget_cents: this.#budget }))
    this.#id = id as string
  }

  async reveal(box: RunningBox, number: number): Promise<void> {
    const body = { amount_cents: this.#amounts[number], purpose: String(number) }
    this.#statuses[number] = (await box.ask('POST', `/v1/cards/${this.#id}/reveal`, body))?.status
  }

  async faults(box: RunningBox): Promise<string[]> {
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
    const byPurpose = new Map(rows.map((row) => [String(row['purpose']), row]))
    if (rows.length !== revealsOfCard) faults.push(`${rows.length} transactions of ${revealsOfCard} reveals`)
    for (const [number, amount] of this.#amounts.entries()) {
      const row: Answered | undefined = byPurpose.get(String(number))
      const status = this.#statuses[number]
      if (row?.['amount_cents'] !== amount || status !== (row['allowed'] === true ? 200 : 403))
        faults.push(`reveal ${number} was answered with ${status}, and the ledger has ${JSON.stringify(row)}`)
    }
    return faults
  }
}

/** Sends messages at once, where the plan has some left. */
async function faultsOfPlan(
  box: RunningBox,
  { furnished }: World,
  { calls, left }: { calls: number; left: number },
): Promise<CaseResult['faults']> {
  const path = `/v1/identities/${furnished.writer.id}/emails`
  const answers = await atOnce(
    clients,
    Array.from({ length: calls }, () => () => box.ask('POST', path, { to: furnished.inbox.email, body_text: 'Hello' })),
  )
  const accepted = answers.filter((answer) => answer?.status === 201).length
  const others = answers.filter(
    (answer) => answer?.status !== 201 && !JSON.stringify(answer?.body).includes('plan_limit_reached'),
  )
  return [
    ...(accepted === left ? [] : [`${accepted} were accepted where the plan had ${left} left`]),
    ...others.map((answer) => `a message was answered with ${answer?.status} ${JSON.stringify(answer?.body)}`),
  ]
}
