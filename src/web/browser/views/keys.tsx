import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { ApiKey } from '../../../accounts/model.ts'
import { post, remove, withQuery } from '../api.ts'
import { KeyLine, scopeWords } from '../keys/key-line.tsx'
import { useList } from '../loaded.ts'
import { announce } from '../widgets/announcer.tsx'
import { FormDialog, SecretDialog } from '../widgets/dialog.tsx'
import { Field, Select, Tick } from '../widgets/form.tsx'
import { Rows } from '../widgets/listing.tsx'
import { Choices } from '../widgets/choices.tsx'
import { IdentityField } from '../widgets/identity-field.tsx'

type Made = ApiKey & { key: string }

/** The API keys of the account. */
export function View(): JSX.Element {
  const list = useList<ApiKey>('/v1/api-keys', {}, () => false, true)
  const [making, setMaking] = useState(false)
  const [rotating, setRotating] = useState<ApiKey>()
  const [revoking, setRevoking] = useState<ApiKey>()
  const [made, setMade] = useState<Made>()
  const show = async (key: Made): Promise<void> => {
    setMaking(false)
    setRotating(undefined)
    setMade(key)
    await list.reload()
  }
  return (
    <>
      <div class="head">
        <h1>API keys</h1>
        <button type="button" class="primary" onClick={() => setMaking(true)}>
          New key
        </button>
      </div>
      <Rows list={list} empty="No key. Programs need one to call the API.">
        {(key) => <KeyLine apiKey={key} onRotate={() => setRotating(key)} onRevoke={() => setRevoking(key)} />}
      </Rows>
      {making && (
        <NewKeyDialog send={async (input) => show(await post<Made>('/v1/api-keys', input))} onClose={() => setMaking(false)} />
      )}
      {rotating && (
        <RotateDialog
          apiKey={rotating}
          send={async (input) => show(await post<Made>(`/v1/api-keys/${rotating.id}/rotate`, input))}
          onClose={() => setRotating(undefined)}
        />
      )}
      {revoking && (
        <RevokeDialog
          apiKey={revoking}
          send={async (keep) => {
            await remove(withQuery(`/v1/api-keys/${revoking.id}`, keep ? { keep } : {}))
            setRevoking(undefined)
            await list.reload()
            announce(`${revoking.label} was revoked.`)
          }}
          onClose={() => setRevoking(undefined)}
        />
      )}
      {made && (
        <SecretDialog title={`The key ${made.label}`} secret={made.key} what="the key" onClose={() => setMade(undefined)} />
      )}
    </>
  )
}

interface RotateProps {
  apiKey: ApiKey
  send: (input: { grace_seconds: number }) => Promise<unknown>
  onClose: () => void
}

function RotateDialog({ apiKey, send, onClose }: RotateProps): JSX.Element {
  return (
    <FormDialog
      title={`Rotate ${apiKey.label}?`}
      submit="Rotate"
      label="Rotate"
      send={({ grace_seconds }) => send({ grace_seconds: Number(grace_seconds) })}
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
  send: (keep: boolean) => Promise<unknown>
  onClose: () => void
}

function RevokeDialog({ apiKey, send, onClose }: RevokeProps): JSX.Element {
  return (
    <FormDialog
      title={`Revoke ${apiKey.label}?`}
      submit={`Revoke ${apiKey.label}`}
      label="Revoke"
      danger
      send={({ keep }) => send(keep === true)}
      onClose={onClose}
    >
      <p>The next call with it ({apiKey.key_prefix}…) is rejected. Its WebSockets are closed.</p>
      <Tick
        name="keep"
        label="Keep what was created with it: keys, webhooks, exports, scheduled e-mails"
        hint="Not if the key may have leaked."
      />
    </FormDialog>
  )
}

interface Props {
  send: (input: Record<string, unknown>) => Promise<unknown>
  onClose: () => void
}

/** The form of a new key. */
function NewKeyDialog({ send, onClose }: Props): JSX.Element {
  return (
    <FormDialog
      title="New API key"
      submit="Create"
      send={({ label, identity_id, rate_limit, expires_at }, files) =>
        send({
          scopes: files.getAll('scopes'),
          ...(label ? { label } : {}),
          ...(identity_id ? { identity_id } : {}),
          ...(rate_limit ? { rate_limit: Number(rate_limit) } : {}),
          ...(expires_at ? { expires_at: new Date(String(expires_at)).toISOString() } : {}),
        })
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
