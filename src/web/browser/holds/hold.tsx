import type { JSX } from 'preact'
import { moneyText } from '../../../cards/money.ts'
import type { HeldCard } from '../../../cards/model.ts'
import type { HeldLogin } from '../../../logins/model.ts'
import type { Hold, HoldReason } from '../../../policy/model.ts'
import type { Email } from '../../../mail/model.ts'
import { post } from '../api.ts'
import { Body } from '../inbox/body.tsx'
import { AttachmentList, Envelope, Source } from '../inbox/message.tsx'
import { type Loaded, useResource } from '../loaded.ts'
import { Link } from '../router.tsx'
import type { ViewProps } from '../views.ts'
import { Texts } from './texts.tsx'
import { Action } from '../widgets/action.tsx'
import { DialogButton, FormDialog } from '../widgets/dialog.tsx'
import { TextArea } from '../widgets/form.tsx'
import { Mark, moment } from '../widgets/format.tsx'
import { IdentityName } from '../widgets/identity-field.tsx'
import { Fact, Section, WhenLoaded } from '../widgets/listing.tsx'

export function HoldView({ params: { id = '' } }: ViewProps): JSX.Element {
  const hold = useResource<Hold>(
    `/v1/holds/${encodeURIComponent(id)}`,
    // a cancelled e-mail names no hold
    ({ type, data }) => data['hold'] != null || type.endsWith('.cancelled') || type.endsWith('.deleted'),
  )
  return (
    <>
      <div class="head">
        <h1>Hold</h1>
        <Link href="/holds">All holds</Link>
      </div>
      <WhenLoaded of={hold}>{(value) => <Held hold={value} reload={hold.reload} />}</WhenLoaded>
    </>
  )
}

function Held({ hold, reload }: { hold: Hold } & Pick<Loaded<Hold>, 'reload'>): JSX.Element {
  const { id, status, identity_id, created_by, expires_at, decided_at, decided_by, reason, sha256, reasons, found } = hold
  const { email, sms, card, login } = hold
  const decide = async (how: 'approve' | 'reject', body: object): Promise<void> => {
    try {
      await post(`/v1/holds/${id}/${how}`, body)
    } finally {
      await reload()
    }
  }
  return (
    <>
      <dl class="facts">
        <Fact name="Status">
          <Mark tone={status === 'open' ? 'warn' : undefined}>{status}</Mark>{' '}
          {decided_at !== null ? `${moment(decided_at)} ${decided_by ?? ''}` : `rejected ${moment(expires_at)} if nobody decides`}
        </Fact>
        {reason !== null && <Fact name="Reason">{reason}</Fact>}
        <Fact name="Identity">
          <IdentityName id={identity_id} />
        </Fact>
        {created_by !== null && (
          <Fact name="Sent by" class="mono">
            {created_by}
          </Fact>
        )}
        <Fact name="SHA-256" class="mono breaks">
          {sha256}
        </Fact>
      </dl>
      <Section id="why" title="Why it is held">
        <ul>
          {reasons.map((one, index) => (
            <li key={index}>{wordsOf(one)}</li>
          ))}
        </ul>
      </Section>
      <Section id="found" title="What was found in it">
        {found.length === 0 ? (
          <p>{reasons.some(({ unscanned }) => unscanned) ? 'It could not be scanned.' : 'Nothing that a rule looks for.'}</p>
        ) : (
          <ul class="rows">
            {found.map(({ kind, place, sample }, index) => (
              <li key={index}>
                <Mark tone="bad">{kind}</Mark>
                <span class="grow breaks">
                  in {place}: <span class="mono">{sample}</span>…
                </span>
              </li>
            ))}
          </ul>
        )}
      </Section>
      <Section id="message" title="What would leave" sheet>
        {email && <HeldEmail email={email} />}
        {sms && (
          <>
            <dl class="facts">
              <Fact name="From">{sms.from}</Fact>
              <Fact name="To">{sms.to}</Fact>
            </dl>
            <div class="mail-text">{sms.body}</div>
          </>
        )}
        {card && <Reveal card={card} />}
        {login && <RevealOfLogin login={login} />}
        {!email && !sms && !card && !login && <p>It was deleted.</p>}
      </Section>
      {status === 'open' && (
        <p class="actions">
          <Action kind="primary" done="Approved." run={() => decide('approve', { sha256 })}>
            Approve
          </Action>
          <DialogButton
            class="danger"
            dialog={(close) => (
              <FormDialog
                title="Reject it?"
                submit="Reject it"
                danger
                done="Rejected."
                send={(typed) => decide('reject', typed)}
                onClose={close}
              >
                <TextArea name="reason" label="Reason" hint="Its sender reads it." rows={3} maxLength={1000} first />
              </FormDialog>
            )}
          >
            Reject
          </DialogButton>
        </p>
      )}
    </>
  )
}

/** Rules are counted from 1, as in the view of policies. */
function wordsOf({ level, action, rule, recipient, unscanned }: HoldReason): string {
  const what = rule === null ? 'the preset' : `rule ${rule + 1}`
  const whom = recipient === null ? '' : `, for ${recipient}`
  return `${action}: ${what} of the ${level}${whom}${unscanned ? '; it could not be scanned' : ''}`
}

function HeldEmail({ email }: { email: Email }): JSX.Element {
  return (
    <>
      <Envelope email={email} />
      <h3 class="subject">{email.subject || 'Without a subject'}</h3>
      <Body email={email} />
      {email.body_html !== null && <Texts email={email} />}
      <AttachmentList email={email} />
      <DialogButton
        dialog={(close) => <Source path={`/v1/identities/${email.identity_id}/emails/${email.id}`} onClose={close} />}
      >
        Source
      </DialogButton>
    </>
  )
}

function Reveal({ card: { label, last4, amount_cents, currency, purpose } }: { card: HeldCard }): JSX.Element {
  return (
    <dl class="facts">
      <Fact name="Card">
        {label} ·· {last4}
      </Fact>
      <Fact name="Amount">{amount_cents === null ? 'any' : moneyText(amount_cents, currency)}</Fact>
      <Fact name="Purpose">{purpose ?? 'none given'}</Fact>
    </dl>
  )
}

function RevealOfLogin({ login: { label, host, purpose } }: { login: HeldLogin }): JSX.Element {
  return (
    <dl class="facts">
      <Fact name="Login">{label}</Fact>
      <Fact name="Host">{host ?? 'none given'}</Fact>
      <Fact name="Purpose">{purpose ?? 'none given'}</Fact>
    </dl>
  )
}
