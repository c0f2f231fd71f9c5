import { Fragment, type JSX } from 'preact'
import { IdentityFrame } from '../identity-frame.tsx'
import { PolicyForm } from '../policy/policy-form.tsx'
import { SendersForm } from '../policy/senders-form.tsx'
import type { ViewProps } from '../views.ts'
import { Section } from '../widgets/listing.tsx'

/** What may leave and who may write: of the account, or of one identity. */
export function View({ params: { id } }: ViewProps): JSX.Element {
  if (id !== undefined)
    return <IdentityFrame id={id}>{() => <Rules path={`/v1/identities/${id}`} others="account" />}</IdentityFrame>
  return (
    <>
      <h1>Policy</h1>
      <Rules path="/v1" others="identity" />
    </>
  )
}

function Rules({ path, others }: { path: string; others: string }): JSX.Element {
  return (
    <Fragment key={path}>
      <Section id="leave" title="What may leave" sheet>
        <p>The policies of the box and of the {others} hold too: the strictest counts.</p>
        <PolicyForm path={`${path}/policy`} />
      </Section>
      <Section id="senders" title="Who may write" sheet>
        <p>The lists of the {others} hold too: a message must pass both.</p>
        <SendersForm path={`${path}/senders`} />
      </Section>
    </Fragment>
  )
}
