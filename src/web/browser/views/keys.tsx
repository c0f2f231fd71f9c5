import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { ApiKey } from '../../../accounts/model.ts'
import { post, remove, withQuery } from '../api.ts'
import { NewKeyDialog } from '../keys/key-form.tsx'
import { KeyLine } from '../keys/key-line.tsx'
import { useList } from '../loaded.ts'
import { announce } from '../widgets/announcer.tsx'
import { Cancel, Dialog, SecretDialog } from '../widgets/dialog.tsx'
import { Form, Select, Tick } from '../widgets/form.tsx'
import { Listing } from '../widgets/listing.tsx'

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
      <Listing list={list} empty="No key. Programs need one to call the API.">
        {(rows) => (
          <ul class="rows">
            {rows.map((key) => (
              <KeyLine key={key.id} apiKey={key} onRotate={() => setRotating(key)} onRevoke={() => setRevoking(key)} />
            ))}
          </ul>
        )}
      </Listing>
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
    <Dialog title={`Rotate ${apiKey.label}?`} onClose={onClose}>
      <Form
        submit="Rotate"
        label="Rotate"
        also={<Cancel onClose={onClose} />}
        send={({ grace_seconds }) => send({ grace_seconds: Number(grace_seconds) })}
      >
        <p>The key gets a new secret and keeps its scopes and limits.</p>
        <Select name="grace_seconds" label="The old secret expires">
          <option value="0">immediately</option>
          <option value="3600">in an hour</option>
          <option value="86400">in a day</option>
          <option value="604800">in a week</option>
        </Select>
      </Form>
    </Dialog>
  )
}

interface RevokeProps {
  apiKey: ApiKey
  send: (keep: boolean) => Promise<unknown>
  onClose: () => void
}

function RevokeDialog({ apiKey, send, onClose }: RevokeProps): JSX.Element {
  return (
    <Dialog title={`Revoke ${apiKey.label}?`} onClose={onClose}>
      <Form
        submit={`Revoke ${apiKey.label}`}
        label="Revoke"
        danger
        also={<Cancel onClose={onClose} />}
        send={({ keep }) => send(keep === true)}
      >
        <p>The next call with it ({apiKey.key_prefix}…) is rejected. Its WebSockets are closed.</p>
        <Tick
          name="keep"
          label="Keep what was created with it: keys, webhooks, exports, scheduled e-mails"
          hint="Not if the key may have leaked."
        />
      </Form>
    </Dialog>
  )
}
