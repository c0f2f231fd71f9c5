import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { Email } from '../../../mail/model.ts'
import { ApiError, getText } from '../api.ts'
import { Mark } from '../widgets/mark.tsx'
import { dkimWords, dmarcWords, spfWords, tlsWords } from './verdict-words.ts'

/** The authentication of the sender as a mark. */
export function VerdictMark({ email: { verified_domain, authentication } }: { email: Email }): JSX.Element | null {
  if (verified_domain !== null) return <Mark tone="good">verified: {verified_domain}</Mark>
  if (authentication === null) return null
  return authentication.dmarc.result === 'fail' ? (
    <Mark tone="bad">possibly forged</Mark>
  ) : (
    <Mark tone="warn">unverified sender</Mark>
  )
}

/** The results of authentication, a sentence each. */
export function VerdictLines({ email }: { email: Email }): JSX.Element | null {
  const { authentication, identity_id, id } = email
  const [open, setOpen] = useState(false)
  if (authentication === null) return <p class="hint">Not checked: it was sent from within the box.</p>
  const { spf, dkim, dmarc } = authentication
  return (
    <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>Authentication</summary>
      <dl class="facts">
        <dt>SPF</dt>
        <dd>{spfWords(spf)}</dd>
        <dt>DKIM</dt>
        <dd>
          {dkim.length === 0
            ? 'It is not signed.'
            : dkim.map((signature, index) => <div key={index}>{dkimWords(signature)}</div>)}
        </dd>
        <dt>DMARC</dt>
        <dd>{dmarcWords(dmarc, email.verified_domain !== null)}</dd>
        <dt>TLS</dt>
        <dd>{open && <Transport path={`/v1/identities/${identity_id}/emails/${id}`} />}</dd>
      </dl>
    </details>
  )
}

/** The transport is in the first lines of the source, which the box wrote itself. */
function Transport({ path }: { path: string }): JSX.Element {
  const [words, setWords] = useState('…')
  useEffect(() => {
    getText(`${path}/raw`, { Range: 'bytes=0-4095' }).then(
      (text) => setWords(tlsWords(text)),
      (error: unknown) => {
        if (!(error instanceof ApiError)) throw error
        setWords(error.message)
      },
    )
  }, [path])
  return <>{words}</>
}
