import { join } from 'node:path'
import { systemClock } from '../../src/core/clock.ts'
import { createLog } from '../../src/core/log.ts'
import { checkedPolicy, maxRules, openPolicy } from '../../src/core/policy.ts'
import type { IdentityRow } from '../../src/identities/identities.ts'
import { Policies } from '../../src/policy/policies.ts'
import { PolicyCheck } from '../../src/policy/policy-check.ts'
import { sql } from '../../src/store/database.ts'
import { prepare } from '../../src/store/migrate.ts'
import { SqliteDatabase } from '../../src/store/sqlite/database.ts'
import { type Bench, finding } from '../finding.ts'
import { inTurn, shown, type Side, type Spread, spreadOf } from '../measure.ts'

/** µs of processor time that a message costs from the call to its outcome: what the box needed for P15. */
const messageCost = 3900

/**
 * What the policies of an identity cost for each message that leaves: without rules, and with a hundred for its recipients, none of which matches. Measured in this
 * process: of a whole message they are less than it varies by.
 */
export const policies: Bench = {
  name: 'policies',
  goals: ['P24', 'P25'],
  async run({ directory, rounds, scale }) {
    const file = join(directory, 'pillarbox.db')
    prepare(file, false)
    const database = await SqliteDatabase.open(file, createLog('silent'))
    try {
      const basis = { database, clock: systemClock, log: createLog('silent') }
      const none = { onRemove: () => undefined, add: () => undefined }
      const policyCheck = new PolicyCheck({
        ...basis,
        policies: new Policies({ ...basis, identities: none as never, cascade: none as never, ofBox: () => openPolicy }),
      })
      const rules = Array.from({ length: maxRules }, (_, index) => ({
        when: { channel: ['email' as const], to: [`@partner${index}.test`, `bob@customer${index}.test`] },
        action: 'hold' as const,
      }))
      for (const [subject, some] of [
        ['one', rules.slice(0, 1)],
        ['all', rules],
      ] as const) {
        const policy = JSON.stringify(checkedPolicy({ preset: 'open', rules: [...some] }))
        await database.transaction((tx) =>
          tx.run(sql`INSERT INTO policies (subject_id, policy, updated_at) VALUES (${subject}, ${policy}, '')`),
        )
      }
      const messages = Math.round(5000 * scale)
      const sender = { key_id: 'key_bench' }
      const side = (name: string, id: string): Side => ({
        name,
        async round() {
          const owner = { id, account_id: 'acct_bench' } as IdentityRow
          const message = {
            owner,
            addresses: ['carl@far.test'],
            inReplyTo: null,
            hasAttachments: false,
            hasLinks: false,
            found: undefined,
          }
          const before = process.cpuUsage()
          // as many as a commit has at most
          for (let made = 0; made < messages; made += 50) {
            await database.transaction(async (tx) => {
              for (let number = 0; number < 50; number++) {
                await policyCheck.scans(tx, sender, owner)
                await policyCheck.email(tx, sender, message)
              }
            })
          }
          const { user, system } = process.cpuUsage(before)
          return { 'µs CPU/msg': (user + system) / messages }
        },
      })
      const sides = [side('open', 'open'), side('1 rule', 'one'), side('100 rules', 'all')]
      const samples = await inTurn(sides, rounds)
      const [open, one, all] = sides.map(({ name }) => spreadOf(samples.get(name), 'µs CPU/msg')) as [Spread, Spread, Spread]
      return [
        finding({
          goal: 'P24',
          what: 'Policies of an identity without rules, for each e-mail that leaves',
          against: `the ${messageCost.toLocaleString('en')} µs of processor time of the whole message in P15`,
          value: (open.median / messageCost) * 100,
          most: 3,
          unit: '%',
          figures: [
            `${shown(open)} µs CPU a message, read twice: before the message is scanned, and in the transaction that stores it`,
          ],
        }),
        finding({
          goal: 'P25',
          what: `${maxRules} rules for 200 recipients, none of which matches, for each e-mail that leaves`,
          against: 'one such rule',
          value: all.median - one.median,
          most: 100,
          unit: 'µs CPU more',
          figures: [`${maxRules} rules ${shown(all)} µs CPU a message, one ${shown(one)}: with the queries for each recipient`],
        }),
      ]
    } finally {
      await database.close()
    }
  },
}
