import { Fault } from '../core/fault.ts'
import type { Caller } from '../core/scopes.ts'
import { Page } from '../core/shapes.ts'
import { type AnyRoute, routeOf } from '../http/route.ts'
import type { AuditLog } from './log.ts'
import { AuditFilter, AuditRow } from './model.ts'

const route = routeOf('Audit log')

export function routes(rows: AuditLog): AnyRoute[] {
  return [
    route('GET', '/audit', {
      scope: 'audit:read',
      sdk: 'audit.list',
      errors: { 403: ['bound_key'] },
      audit: 'audit.listed',
      summary: 'List the audit log',
      description:
        'Who did what in the account, newest first: keys, sign-ins, changes, exports, and each read of messages, codes, one-time passwords, logins and cards. ' +
        'Reads are listed within a second, repetitions within a minute as one row with their count. Rows are kept for retention.audit and never change. Not for keys that are bound to one ' +
        'identity (forbidden, code bound_key).',
      query: AuditFilter,
      reply: Page(AuditRow),
      example: { query: { action: 'key.*' } },
      handle: ({ caller, query }) => {
        requireWhole(caller)
        return rows.list(caller.account_id, query)
      },
    }),
    route('GET', '/audit/box', {
      scope: 'audit:read',
      operator: true,
      audit: 'audit.listed',
      summary: 'List the audit log of the box',
      description: 'The same of all accounts.',
      query: AuditFilter,
      reply: Page(AuditRow),
      handle: ({ query }) => rows.list(undefined, query),
    }),
  ]
}

function requireWhole({ identity_id }: Caller): void {
  if (identity_id === null) return
  throw new Fault('forbidden', 'A key that is bound to one identity cannot read the audit log of the account.', {
    code: 'bound_key',
  })
}
