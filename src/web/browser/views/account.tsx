import type { JSX } from 'preact'
import type { Account } from '../../../accounts/model.ts'
import { PasswordForm } from '../account/password-form.tsx'
import { SecondFactor } from '../account/second-factor.tsx'
import { SessionList } from '../account/session-list.tsx'
import { useResource } from '../loaded.ts'
import { WhenLoaded } from '../widgets/listing.tsx'

/** The login and the sessions of the account. */
export function View(): JSX.Element {
  const account = useResource<Account>('/v1/account')
  return (
    <>
      <div class="head">
        <h1>Account</h1>
      </div>
      <WhenLoaded of={account}>
        {(value) => (
          <>
            <PasswordForm account={value} onChange={account.reload} />
            <SecondFactor account={value} onChange={account.reload} />
            <SessionList />
          </>
        )}
      </WhenLoaded>
    </>
  )
}
