import { card } from '../../support/card.ts'
import { type Random, randomFrom } from '../../support/random.ts'
import { atOnce } from '../box/at-once.ts'
import { type Answered, type RunningBox, World } from '../box/world.ts'
import { type Cases, caseSeed, type CaseResult, type Setting, type Trial } from '../trial.ts'

/** Reveals of one case, and calls that are open at once. */
const [revealsOfCase, clients] = [1000, 40]

export const budgets: Trial = {
  name: 'budgets',
  about:
    'Many clients at once reveal one card, each with an amount of its own, until long after its budget is spent: what is spent is the sum of what was ' +
    'allowed, each reveal was allowed exactly when its amount was left, and each client was answered what the ledger has. Then many send at once at the end ' +
    'of a plan: as many are accepted as the plan has left.',
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
  async open({ directory, program, seed }: Setting): Promise<Cases> {
    const world = await World.open(directory, program, randomFrom(seed))
    const home = world.home('box')
    let sent = 0
    return {
      async run(number) {
        const random = randomFrom(caseSeed(seed, number))
        world.peers.begin(() => 0)
        const left = 1 + random(40)
        const box = await world.start(home, {
          PILLARBOX_LIMITS__EMAILS_SENT: String(sent + left),
          PILLARBOX_OUTBOUND__RATE_PER_IDENTITY: '0',
          PILLARBOX_OUTBOUND__RATE_PER_DOMAIN: '0',
        })
        try {
          const faults = [...(await faultsOfReveals(box, world, random)), ...(await faultsOfPlan(box, world, left))]
          sent += left
          await box.process.end('SIGTERM')
          return { tries: revealsOfCase, faults }
        } finally {
          await box.process.end('SIGKILL')
        }
      },
      close: () => world.close(),
    }
  },
}

async function faultsOfReveals(box: RunningBox, { furnished }: World, random: Random): Promise<CaseResult['faults']> {
  const budget_cents = random(2) === 0 ? random(1000) : 1000 + random(100_000)
  const largest = 1 + random(500)
  const { id } = await box.get('POST', `/v1/identities/${furnished.inbox.id}/cards`, card({ budget_cents }))
  const answers = await atOnce(
    clients,
    Array.from({ length: revealsOfCase }, (_, index) => async () => {
      const amount_cents = 1 + random(largest)
      return { amount_cents, answer: await box.ask('POST', `/v1/cards/${id}/reveal`, { amount_cents, purpose: String(index) }) }
    }),
  )
  const faults: string[] = []
  const rows = (await box.list(`/v1/cards/${id}/transactions`)).toReversed()
  let spent = 0
  for (const row of rows) {
    const amount = Number(row['amount_cents'])
    const fits = spent + amount <= budget_cents
    if (row['allowed'] !== fits) faults.push(`${amount} of ${budget_cents - spent} left was ${fits ? 'refused' : 'allowed'}`)
    if (row['allowed'] === true) spent += amount
    if (row['spent_cents'] !== spent) faults.push(`${String(row['spent_cents'])} are spent after a transaction, not ${spent}`)
  }
  const limits = await box.get('GET', `/v1/cards/${id}/limits`)
  if (limits['spent_cents'] !== spent) faults.push(`${String(limits['spent_cents'])} are spent, and ${spent} were allowed`)
  const byPurpose = new Map(rows.map((row) => [String(row['purpose']), row]))
  if (rows.length !== revealsOfCase) faults.push(`${rows.length} transactions of ${revealsOfCase} reveals`)
  for (const [index, { amount_cents, answer }] of answers.entries()) {
    const row: Answered | undefined = byPurpose.get(String(index))
    if (row?.['amount_cents'] !== amount_cents || answer?.status !== (row['allowed'] === true ? 200 : 403))
      faults.push(`reveal ${index} was answered with ${answer?.status}, and the ledger has ${JSON.stringify(row)}`)
  }
  return faults
}

async function faultsOfPlan(box: RunningBox, { furnished }: World, left: number): Promise<CaseResult['faults']> {
  const path = `/v1/identities/${furnished.writer.id}/emails`
  const answers = await atOnce(
    clients,
    Array.from({ length: left + 20 }, () => () => box.ask('POST', path, { to: furnished.inbox.email, body_text: 'Hello' })),
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
