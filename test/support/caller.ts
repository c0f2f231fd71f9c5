import { type Caller, scopes } from '../../src/core/scopes.ts'

/** A caller of an account with every scope, without limits. */
export function callerOf(account_id: string, more: Partial<Caller> = {}): Caller {
  return {
    account_id,
    key_id: null,
    session_id: null,
    secret: 0,
    scopes: new Set(scopes),
    identity_id: null,
    rate_limit: 0,
    until: Infinity,
    ip: '',
    user_agent: '',
    ...more,
  }
}
