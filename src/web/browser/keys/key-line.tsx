import type { ComponentChildren, JSX } from 'preact'
import type { ApiKey } from '../../../accounts/model.ts'
import { Mark, moment, Time } from '../widgets/format.tsx'
import { IdentityName } from '../widgets/identity-field.tsx'

export const scopeWords: Record<ApiKey['scopes'][number], string> = {
  'identities:read': 'read identities, their events and one-time codes',
  'identities:write': 'create, change and delete identities',
  'messages:read': 'read e-mail and text messages',
  'messages:write': 'send, mark and delete e-mail and text messages',
  'emails:read': 'read e-mail only',
  'emails:write': 'send, mark and delete e-mail only',
  'sms:read': 'read text messages only',
  'sms:write': 'send, mark and delete text messages only',
  'cards:read': 'list and reveal cards',
  'cards:write': 'store, freeze and cancel cards, set budgets',
  'account:read': 'read keys, webhooks, domains and settings',
  'account:write': 'create and revoke keys, change webhooks and domains',
}

const every = Object.keys(scopeWords).length

/** A key; its children are the buttons. */
export function KeyLine({ apiKey, children }: { apiKey: ApiKey; children: ComponentChildren }): JSX.Element {
  const { label, key_prefix, scopes, identity_id, last_used_at, expires_at, created_at, rate_limit } = apiKey
  const over = expires_at !== null && Date.parse(expires_at) <= Date.now()
  return (
    <li>
      <span class="grow">
        <strong>{label}</strong> <span class="mono faint">{key_prefix}…</span> {over && <Mark tone="warn">expired</Mark>}
        <br />
        <span class="faint">
          {scopes.length === every ? 'everything' : scopes.join(', ')}
          {rate_limit > 0 && ` · ${rate_limit.toLocaleString('en')} calls a minute`}
          {expires_at !== null && ` · ${over ? 'expired' : 'expires'} ${moment(expires_at)}`}
          {identity_id !== null && (
            <>
              {' · of '}
              <IdentityName id={identity_id} />
            </>
          )}
        </span>
      </span>
      <span class="faint">
        {last_used_at === null ? 'never used, created' : 'used'} <Time at={last_used_at ?? created_at} />
      </span>
      <span class="actions">{children}</span>
    </li>
  )
}
