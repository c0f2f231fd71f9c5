import { expect, test } from 'vitest'
import { DuePolicy } from '../../src/outbound/compose/due-policy.ts'
import { PolicyCheck } from '../../src/policy/policy-check.ts'

test('the policies of a message that is due are read once, so that all that is asked of them is of one moment', async () => {
  let reads = 0
  const rules = [{ when: { links: true }, action: 'hold' }]
  const policies = {
    of: () =>
      Promise.resolve([{ level: 'box', policy: { preset: reads++ === 0 ? 'all' : 'open', rules: reads === 1 ? rules : [] } }]),
  }
  const policyCheck = new PolicyCheck({ policies, clock: { now: () => 0 } } as never)
  const scanned: unknown[] = []
  const examiner = {
    examine: (_raw: Buffer, { scan }: { scan: boolean }) => {
      scanned.push(scan)
      return Promise.resolve({ sha256: '', parsed: { attachments: [], links: [], parse_error: null } })
    },
  }
  const database = { get: () => Promise.resolve({ id: 'ident_1', account_id: 'acct_1' }) }
  const due = new DuePolicy({ policyCheck, examiner, database } as never)
  const email = { detail: JSON.stringify({ created_by: 'key_01k9x0000000000000000000' }), trace: '', from_address: 'a@b.test' }
  await due.read(email as never, Buffer.from('From: a@b.test\r\n\r\n'))
  expect([reads, scanned]).toEqual([1, [true]])
})
