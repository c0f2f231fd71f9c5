import type { ComponentChildren, JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { ApiKey } from '../../../accounts/model.ts'
import { post, remove, withQuery } from '../api.ts'
import { eventsOf, useList } from '../loaded.ts'
import { DialogButton, FormDialog, SecretDialog } from '../widgets/dialog.tsx'
import { Field, Select, Tick } from '../widgets/form.tsx'
import { Rows } from '../widgets/listing.tsx'
import { Choices } from '../widgets/choices.tsx'
import { Mark, moment, Time, typedTime } from '../widgets/format.tsx'
import { IdentityField, IdentityName } from '../widgets/identity-field.tsx'

type Made = ApiKey & { key: string }

const scopeWords: Record<ApiKey['scopes'][number], string> = {
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
  'holds:decide': 'say what may leave and who may write, and approve or reject what is held',
  'audit:read': 'read who did what; not for a key of one identity',
}

export function View(): JSX.Element {
  // uses have no events
  const list = useList<ApiKey>('/v1/api-keys', {}, eventsOf('key.'), true)
  const [made, setMade] = useState<Made>()
  const show = (key: Made): Promise<void> => {
    setMade(key)
    return list.reload()
  }
  return (
    <>
      <div class="head">
        <h1>API keys</h1>
        <DialogButton class="primary" dialog={(close) => <NewKeyDialog onMade={show} onClose={close} />}>
          New key
        </DialogButton>
      </div>
      <Rows list={list} empty="No key. Programs need one to call the API.">
        {(key) => (
          <KeyLine apiKey={key}>
            <DialogButton
              name={`Rotate ${key.label}`}
              dialog={(close) => <RotateDialog apiKey={key} onMade={show} onClose={close} />}
            >
              Rotate
            </DialogButton>
            <DialogButton
              name={`Revoke ${key.label}`}
              dialog={(close) => <RevokeDialog apiKey={key} onChange={list.reload} onClose={close} />}
            >
              Revoke
            </DialogButton>
          </KeyLine>
        )}
      </Rows>
      {made && (
        <SecretDialog title={`The key ${made.label}`} secret={made.key} what="the key" onClose={() => setMade(undefined)} />
      )}
    </>
  )
}

const every = Object.keys(scopeWords).length

/** A key; its children are the buttons. */
function KeyLine({ apiKey, children }: { apiKey: ApiKey; children: ComponentChildren }): JSX.Element {
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

interface Props {
  onMade: (key: Made) => Promise<void>
  onClose: () => void
}

function RotateDialog({ apiKey: { id, label }, onMade, onClose }: Props & { apiKey: ApiKey }): JSX.Element {
  return (
    <FormDialog
      title={`Rotate ${label}?`}
      submit="Rotate"
      label="Rotate"
      send={({ grace_seconds }) => post<Made>(`/v1/api-keys/${id}/rotate`, { grace_seconds: Number(grace_seconds) }).then(onMade)}
      onClose={onClose}
    >
      <p>The key gets a new secret and keeps its scopes and limits.</p>
      <Select name="grace_seconds" label="The old secret expires">
        <option value="0">immediately</option>
        <option value="3600">in an hour</option>
        <option value="86400">in a day</option>
        <option value="604800">in a week</option>
      </Select>
    </FormDialog>
  )
}

interface RevokeProps {
  apiKey: ApiKey
  onChange: () => Promise<void>
  onClose: () => void
}

function RevokeDialog({ apiKey: { id, label, key_prefix }, onChange, onClose }: RevokeProps): JSX.Element {
  return (
    <FormDialog
      title={`Revoke ${label}?`}
      submit={`Revoke ${label}`}
      label="Revoke"
      danger
      done={`${label} was revoked.`}
      send={({ keep }) => remove(withQuery(`/v1/api-keys/${id}`, keep ? { keep } : {})).then(onChange)}
      onClose={onClose}
    >
      <p>The next call with it ({key_prefix}…) is rejected. Its WebSockets are closed.</p>
      <Tick
        name="keep"
        label="Keep what was created with it: keys, webhooks, exports, scheduled e-mails"
        hint="Not if the key may have leaked."
      />
    </FormDialog>
  )
}

function NewKeyDialog({ onMade, onClose }: Props): JSX.Element {
  return (
    <FormDialog
      title="New API key"
      submit="Create"
      send={({ label, identity_id, rate_limit, expires_at }, files) =>
        post<Made>('/v1/api-keys', {
          scopes: files.getAll('scopes'),
          ...(label ? { label } : {}),
          ...(identity_id ? { identity_id } : {}),
          ...(rate_limit ? { rate_limit: Number(rate_limit) } : {}),
          expires_at: typedTime(expires_at),
        }).then(onMade)
      }
      onClose={onClose}
      wide
    >
      <Field name="label" label="Name" first autoComplete="off" hint="A label, such as mail reader." />
      <Choices name="scopes" legend="Scopes" choices={choices} chosen={['identities:read', 'messages:read']} />
      <IdentityField
        label="Of"
        none="every identity"
        hint="A key of one identity has no access to the others; it is revoked with its identity."
      />
      <Field name="expires_at" label="Ends" type="datetime-local" hint="Empty: never." />
      <Field
        name="rate_limit"
        label="Calls a minute"
        inputMode="numeric"
        autoComplete="off"
        hint="Empty: the limit from the settings. 0: no limit."
      />
    </FormDialog>
  )
}

const choices = Object.entries(scopeWords).map(([value, hint]) => ({
  value,
  label: <span class="mono">{value}</span>,
  hint,
}))
