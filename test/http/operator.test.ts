import * as z from 'zod'
import { expect, onTestFinished, test } from 'vitest'
import { scopes } from '../../src/core/scopes.ts'
import { routeOf } from '../../src/http/route.ts'
import { errorOf, openToybox } from './toy-box.ts'

const everyScope = new Set(scopes)
const caller = { session_id: null, secret: 0, scopes: everyScope, rate_limit: 0, until: Infinity }

/** Whom a token stands for: all hold every scope. */
const callers = {
  owner: { ...caller, key_id: 'key_owner', account_id: 'acct_1', identity_id: null },
  bound: { ...caller, key_id: 'key_bound', account_id: 'acct_1', identity_id: 'ident_1' },
  other: { ...caller, key_id: 'key_other', account_id: 'acct_2', identity_id: null },
}

test('what is the operator’s is done by no other account, and by no key that is bound to one identity', async () => {
  const reply = z.object({ account: z.string() })
  const secret = routeOf('Toys')('POST', '/levers', {
    scope: 'account:write',
    operator: true,
    summary: 'Pull a lever',
    reply,
    handle: async ({ caller: { account_id } }) => ({ account: account_id }),
  })
  const box = await openToybox({}, { routes: [secret], authenticate: (token) => callers[token as keyof typeof callers] })
  onTestFinished(() => box.server.stop())
  const pulled = await box.call('POST', '/v1/levers', { key: 'owner' })
  expect([pulled.status, await pulled.json()]).toEqual([200, { account: 'acct_1' }])
  for (const key of ['bound', 'other']) {
    const headers = { 'Pillarbox-Account': 'acct_1' }
    const told = await box.call('POST', '/v1/levers', { key, headers })
    expect([key, await errorOf(told)]).toMatchObject([key, { type: 'forbidden', code: 'operator_only' }])
  }
})
