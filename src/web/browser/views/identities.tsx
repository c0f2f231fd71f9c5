import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { Identity } from '../../../identities/model.ts'
import type { LiveEvent } from '../live.ts'
import { useList } from '../loaded.ts'
import { go, Link } from '../router.tsx'
import { Rows } from '../widgets/listing.tsx'
import { Mark, Time } from '../widgets/format.tsx'
import { post } from '../api.ts'
import { announce } from '../widgets/announcer.tsx'
import { FormDialog } from '../widgets/dialog.tsx'
import { Field, type Typed } from '../widgets/form.tsx'

type Row = Pick<Identity, 'id' | 'name' | 'email' | 'phone_number' | 'status' | 'created_at'>

const concerns = ({ type }: LiveEvent): boolean => type.startsWith('identity.') || type.startsWith('phone.')

/** The debounce of the search in milliseconds. */
const quiet = 200

/** Every identity of the account. */
export function View(): JSX.Element {
  const [typed, setTyped] = useState('')
  const [query, setQuery] = useState('')
  const [making, setMaking] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setQuery(typed.trim()), quiet)
    return () => clearTimeout(timer)
  }, [typed])
  const list = useList<Row>('/v1/identities', { query }, concerns)
  return (
    <>
      <div class="head">
        <h1>Identities</h1>
        <button type="button" class="primary" onClick={() => setMaking(true)}>
          New identity
        </button>
      </div>
      <p>
        <label class="unseen" for="search">
          Search identities
        </label>
        <input
          id="search"
          type="search"
          placeholder="Search by name, address or number"
          value={typed}
          onInput={({ currentTarget }) => setTyped(currentTarget.value)}
        />
      </p>
      <Rows
        list={list}
        empty={query === '' ? 'No identity yet. Each has a name and an address that receives mail.' : 'No results.'}
      >
        {(row) => <IdentityLine row={row} />}
      </Rows>
      {making && <NewIdentityDialog onClose={() => setMaking(false)} onMade={({ id }) => go(`/identities/${id}/inbox`)} />}
    </>
  )
}

function IdentityLine({ row: { id, name, email, phone_number, status, created_at } }: { row: Row }): JSX.Element {
  return (
    <li>
      <span class="grow">
        <Link href={`/identities/${id}/inbox`}>
          <strong>{name}</strong>
        </Link>{' '}
        {status === 'suspended' && <Mark tone="warn">suspended</Mark>}
        <br />
        <span class="mono faint">
          {email}
          {phone_number !== undefined && ` · ${phone_number}`}
        </span>
      </span>
      <span class="faint">
        <Time at={created_at} />
      </span>
      <Link href={`/identities/${id}/settings`} aria-label={`Settings of ${name}`}>
        Settings
      </Link>
    </li>
  )
}

interface Props {
  onClose: () => void
  onMade: (identity: Identity) => void
}

/** The form of a new identity. */
function NewIdentityDialog({ onClose, onMade }: Props): JSX.Element {
  const send = async (typed: Typed): Promise<void> => {
    const given = Object.fromEntries(Object.entries(typed).filter(([, value]) => value !== ''))
    const made = await post<Identity>('/v1/identities', given)
    announce(`${made.name} was created: ${made.email}`)
    onClose()
    onMade(made)
  }
  return (
    <FormDialog title="New identity" send={send} submit="Create" onClose={onClose}>
      <Field name="name" label="Name" hint="Empty: a generated name." autoComplete="off" first />
      <Field
        name="email_username"
        label="Address, before the @"
        hint="Empty: derived from the name. It is never reused."
        autoComplete="off"
        autoCapitalize="none"
      />
      <Field name="email_domain" label="Domain" hint="Empty: the domain of the box." autoComplete="off" autoCapitalize="none" />
    </FormDialog>
  )
}
