import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { moneyText } from '../../../cards/money.ts'
import type { Hold, HoldRow } from '../../../policy/model.ts'
import { type ApiError, post, requireApiError } from '../api.ts'
import { Field, Form } from '../widgets/form.tsx'
import { moment } from '../widgets/format.tsx'
import { Fact, Trouble } from '../widgets/listing.tsx'
import { Texts } from '../holds/texts.tsx'
import { useLink } from '../router.tsx'

const words = { approve: 'Approve', reject: 'Reject' } as const
type Decision = keyof typeof words

/** The target of the links in a digest: shows what is held. Nothing is decided before a button is pressed. */
export function View(): JSX.Element {
  const link = useLink('/decide')
  const token = link.get('token') ?? ''
  const asked: Decision = link.get('decision') === 'reject' ? 'reject' : 'approve'
  // what one link shows must never stand above the buttons of another
  return <Decide key={`${asked} ${token}`} token={token} asked={asked} />
}

function Decide({ token, asked }: { token: string; asked: Decision }): JSX.Element {
  const [decision, setDecision] = useState<Decision>(asked)
  const [hold, setHold] = useState<Hold | HoldRow>()
  const [error, setError] = useState<ApiError>()
  useEffect(() => {
    if (token === '') return
    post<Hold>('/v1/hold-links/read', { token }, { quiet: true }).then(setHold, (thrown: unknown) =>
      setError(requireApiError(thrown)),
    )
  }, [token])
  const decide = async (chosen: Decision, reason: string): Promise<void> => {
    const input = { token, decision: chosen, ...(reason === '' ? {} : { reason }) }
    setHold(await post<HoldRow>('/v1/hold-links/decide', input, { quiet: true }))
  }
  return (
    <main class="centered" id="main">
      <h1>{words[decision]}?</h1>
      {token === '' && <p>This address works only with the token at the end of a link that was mailed to you.</p>}
      {error && <Trouble error={error} />}
      {hold && hold.status !== 'open' && <p role="status">This is {hold.status}.</p>}
      {hold && hold.status === 'open' && (
        <>
          {'email' in hold && <Content hold={hold} />}
          <Form
            label={words[decision]}
            submit={words[decision]}
            danger={decision === 'reject'}
            send={({ reason }) => decide(decision, String(reason ?? ''))}
            also={
              <button type="button" onClick={() => setDecision(decision === 'approve' ? 'reject' : 'approve')}>
                {decision === 'approve' ? 'Reject instead' : 'Approve instead'}
              </button>
            }
          >
            <Field name="reason" label="Reason" hint="For the sender; may be empty." autoComplete="off" />
          </Form>
        </>
      )}
    </main>
  )
}

function Content({ hold: { email, sms, card, login, found, expires_at } }: { hold: Hold }): JSX.Element {
  const to = email ? Object.values(email.recipients).flatMap((list) => list.map(({ address }) => address)) : []
  return (
    <>
      <dl class="facts">
        {email && (
          <>
            <Fact name="From">{email.from}</Fact>
            {email.reply_to !== null && <Fact name="Replies go to">{email.reply_to}</Fact>}
            <Fact name="To">{to.join(', ')}</Fact>
            <Fact name="Subject">{email.subject}</Fact>
            {email.attachments.length > 0 && (
              <Fact name="Attachments">
                {email.attachments.map(({ filename, size }) => `${filename} (${size} bytes)`).join(', ')}
              </Fact>
            )}
          </>
        )}
        {sms && <Fact name="Text message to">{sms.to}</Fact>}
        {card && (
          <>
            <Fact name="Reveal of the card">
              {card.label} ·· {card.last4}
            </Fact>
            <Fact name="Amount">{card.amount_cents === null ? 'any' : moneyText(card.amount_cents, card.currency)}</Fact>
            <Fact name="Purpose">{card.purpose ?? 'none was said'}</Fact>
          </>
        )}
        {login && (
          <>
            <Fact name="Reveal of the login">{login.label}</Fact>
            <Fact name="Host">{login.host ?? 'none'}</Fact>
            <Fact name="Purpose">{login.purpose ?? 'none was said'}</Fact>
          </>
        )}
        {found.length > 0 && (
          <Fact name="Found in it">{found.map(({ kind, place: where }) => `${kind} in ${where}`).join(', ')}</Fact>
        )}
        <Fact name="Rejected if nobody decides">{moment(expires_at)}</Fact>
      </dl>
      {email && <Texts email={email} />}
      {sms && <pre class="scrolls">{sms.body}</pre>}
    </>
  )
}
