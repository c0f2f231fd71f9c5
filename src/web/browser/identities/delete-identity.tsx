import type { JSX } from 'preact'
import type { Identity } from '../../../identities/model.ts'
import { type Page, remove } from '../api.ts'
import { useResource } from '../loaded.ts'
import { go } from '../router.tsx'
import { announce } from '../widgets/announcer.tsx'
import { Confirm } from '../widgets/dialog.tsx'
import { bytes } from '../widgets/format.tsx'

const pageSize = 200

/** Deletes an identity after listing what is deleted with it. */
export function DeleteIdentity({ identity, onClose }: { identity: Identity; onClose: () => void }): JSX.Element {
  const { id, name, email, phone_number, storage } = identity
  const threads = useAmount(`/v1/identities/${id}/threads`)
  const texts = useAmount(`/v1/identities/${id}/sms`)
  const cards = useAmount(`/v1/identities/${id}/cards`)
  const secrets = useAmount(`/v1/identities/${id}/totp`)
  const run = async (): Promise<void> => {
    await remove(`/v1/identities/${id}`)
    announce(`${name} was deleted.`)
    go('/')
  }
  return (
    <Confirm title={`Delete ${name}?`} action={`Delete ${name}`} run={run} onClose={onClose}>
      <p>This also deletes:</p>
      <ul>
        <li>
          its address <strong class="mono">{email}</strong>, which refuses mail from now on and is never given to anybody else
        </li>
        {phone_number !== undefined && (
          <li>
            its phone number <strong>{phone_number}</strong>
          </li>
        )}
        <li>
          {threads('conversation')} of e-mail{storage ? ` (${bytes(storage.used)})` : ''}, removed for good when the time of the
          trash is over
        </li>
        <li>{texts('text message')}</li>
        <li>{cards('card')}</li>
        <li>{secrets('one-time password')}</li>
      </ul>
    </Confirm>
  )
}

/** Describes the length of a list, as far as one page shows. */
function useAmount(path: string): (what: string) => string {
  const { value } = useResource<Page<unknown>>(`${path}?limit=${pageSize}`)
  return (what) => {
    if (!value) return `all its ${what}s`
    const { length } = value.data
    if (value.has_more) return `more than ${pageSize} ${what}s`
    return `${length === 0 ? 'no' : length} ${what}${length === 1 ? '' : 's'}`
  }
}
