import type { JSX } from 'preact'
import { IdentityFrame } from '../identity-frame.tsx'
import { PolicyForm } from '../policy/policy-form.tsx'
import type { ViewProps } from '../views.ts'
import { Section } from '../widgets/listing.tsx'

/** The policy of the account, or of one identity. */
export function View({ params: { id } }: ViewProps): JSX.Element {
  if (id !== undefined)
    return <IdentityFrame id={id}>{() => <Leaving path={`/v1/identities/${id}`} others="account" />}</IdentityFrame>
  return (
    <>
      <h1>Policy</h1>
      <Leaving path="/v1" others="identity" />
    </>
  )
}

function Leaving({ path, others }: { path: string; others: string }): JSX.Element {
  return (
    <Section key={path} id="leave" title="What may leave" sheet>
      <p>The policies of the box and of the {others} hold too: the strictest counts.</p>
      <PolicyForm path={`${path}/policy`} />
    </Section>
  )
}
