import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { TotpCode, TotpEntry } from '../../../totp/model.ts'
import { get, post, remove } from '../api.ts'
import { IdentityFrame } from '../identity-frame.tsx'
import { eventsOf, useList } from '../loaded.ts'
import type { ViewProps } from '../views.ts'
import { ConfirmButton, DialogButton, FormDialog } from '../widgets/dialog.tsx'
import { Rows } from '../widgets/listing.tsx'
import { Field, filledIn } from '../widgets/form.tsx'
import { Action } from '../widgets/action.tsx'
import { CopyButton } from '../widgets/copy-button.tsx'

export function View({ params: { id = '' } }: ViewProps): JSX.Element {
  return <IdentityFrame id={id}>{() => <Entries key={id} id={id} />}</IdentityFrame>
}

function Entries({ id }: { id: string }): JSX.Element {
  const list = useList<TotpEntry>(`/v1/identities/${id}/totp`, {}, eventsOf('totp.', id))
  return (
    <>
      <div class="head">
        <h2>One-time passwords</h2>
        <DialogButton class="primary" dialog={(close) => <NewEntryDialog id={id} onMade={list.reload} onClose={close} />}>
          New one-time password
        </DialogButton>
      </div>
      <Rows list={list} empty="No one-time password yet. It provides the codes for services with an authenticator app.">
        {(entry) => (
          <li>
            <span class="grow">
              <strong>{entry.service_name}</strong>
              <br />
              <span class="faint">
                {entry.account_name !== null && `${entry.account_name} · `}
                {entry.digits} digits, {entry.period} s, {entry.algorithm}
              </span>
            </span>
            <Code entry={entry} />
            <ConfirmButton
              label="Delete"
              name={`Delete ${entry.service_name}`}
              title={`Delete the one-time password of ${entry.service_name}?`}
              action="Delete"
              done={`The one-time password of ${entry.service_name} was deleted.`}
              run={() => remove(`/v1/identities/${id}/totp/${entry.id}`).then(list.reload)}
            >
              <p>
                Its secret is deleted. If it is the only second factor, disable that at {entry.service_name} first, or the account
                there is locked.
              </p>
            </ConfirmButton>
          </li>
        )}
      </Rows>
    </>
  )
}

function NewEntryDialog({ id, onClose, onMade }: { id: string; onClose: () => void; onMade: () => Promise<void> }): JSX.Element {
  return (
    <FormDialog
      title="New one-time password"
      submit="Set up"
      done="The one-time password was created."
      send={(typed) => post(`/v1/identities/${id}/totp`, filledIn(typed)).then(onMade)}
      onClose={onClose}
    >
      <Field
        name="secret"
        label="Secret"
        first
        autoComplete="off"
        spellcheck={false}
        hint="As the service shows it, such as JBSW Y3DP EHPK 3PXP. It is stored encrypted and never shown again."
      />
      <Field
        name="uri"
        label="Or the link of its QR code"
        autoComplete="off"
        spellcheck={false}
        hint="otpauth://totp/…, instead of the secret."
      />
      <Field name="service_name" label="Service" autoComplete="off" hint="Empty: the name in the link." />
      <Field name="account_name" label="Account at the service" autoComplete="off" />
    </FormDialog>
  )
}

const pace = 250

/** The code on request, while it is valid: each access is logged. */
function Code({ entry: { id, identity_id, service_name } }: { entry: TotpEntry }): JSX.Element {
  const [shown, setShown] = useState<{ code: TotpCode; until: number }>()
  const [now, setNow] = useState(0)
  useEffect(() => {
    const timer = shown && setInterval(() => setNow(performance.now()), pace)
    return () => clearInterval(timer)
  }, [shown])
  const left = shown ? (shown.until - now) / 1000 : 0
  useEffect(() => {
    if (shown && left <= 0) setShown(undefined)
  }, [shown, left])
  const read = async (): Promise<void> => {
    const code = await get<TotpCode>(`/v1/identities/${identity_id}/totp/${id}/code`)
    // the clock of this machine may be wrong: only the remaining validity counts
    const at = performance.now()
    setNow(at)
    setShown({ code, until: at + code.remaining_seconds * 1000 })
  }
  const { code = '', period = 30 } = shown?.code ?? {}
  return (
    <span class="code">
      <span role="status">{shown && <strong class="mono">{code}</strong>}</span>
      {shown && (
        <>
          <CopyButton text={code} what={`the code of ${service_name}`} />
          <Ring left={left} of={period} label="Expires in" />
        </>
      )}
      <Action run={read} label={`Show the code of ${service_name}`}>
        Show the code
      </Action>
    </span>
  )
}

const radius = 16
const around = 2 * Math.PI * radius

/** A countdown ring: `left` of `of` seconds. */
function Ring({ left, of, label }: { left: number; of: number; label: string }): JSX.Element {
  const seconds = Math.max(0, Math.ceil(left))
  return (
    <svg class={`ring ${left <= 5 ? 'high' : ''}`} viewBox="0 0 40 40" role="img" aria-label={`${label}: ${seconds} s`}>
      <circle class="ring-track" cx="20" cy="20" r={radius} />
      <circle
        class="ring-left"
        cx="20"
        cy="20"
        r={radius}
        transform="rotate(-90 20 20)"
        stroke-dasharray={around}
        stroke-dashoffset={around * (1 - Math.min(1, Math.max(0, left / of)))}
      />
      <text x="20" y="24.5" text-anchor="middle">
        {seconds}
      </text>
    </svg>
  )
}
