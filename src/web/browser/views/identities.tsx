import type { JSX } from 'preact'
import type { Identity, ReducedIdentity } from '../../../identities/model.ts'
import type { LiveEvent } from '../live.ts'
import { useList, useSearch } from '../loaded.ts'
import { go, Link } from '../router.tsx'
import { Rows } from '../widgets/listing.tsx'
import { Mark, Time, typedTime } from '../widgets/format.tsx'
import { post } from '../api.ts'
import { announce } from '../widgets/announcer.tsx'
import { DialogButton, FormDialog } from '../widgets/dialog.tsx'
import { Field, filledIn, type Typed } from '../widgets/form.tsx'

type Row = ReducedIdentity

const concerns = ({ type }: LiveEvent): boolean => type.startsWith('identity.') || type.startsWith('phone.')

export function View(): JSX.Element {
  const [query, search] = useSearch()
  const list = useList<Row>('/v1/identities', { query }, concerns)
  return (
    <>
      <div class="head">
        <h1>Identities</h1>
        <DialogButton class="primary" dialog={(close) => <NewIdentityDialog onClose={close} />}>
          New identity
        </DialogButton>
      </div>
      <p>
        <label class="unseen" for="search">
          Search identities
        </label>
        <input id="search" placeholder="Search by name, address or number" {...search} />
      </p>
      <Rows
        list={list}
        empty={query === '' ? 'No identity yet. Each has a name and an address that receives mail.' : 'No results.'}
      >
        {(row) => <IdentityLine row={row} />}
      </Rows>
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

async function create({ expires_at, ...typed }: Typed): Promise<void> {
  const input = { ...filledIn(typed), expires_at: typedTime(expires_at) }
  const { id, name, email } = await post<Identity>('/v1/identities', input)
  announce(`${name} was created: ${email}`)
  go(`/identities/${id}/inbox`)
}

function NewIdentityDialog({ onClose }: { onClose: () => void }): JSX.Element {
  return (
    <FormDialog title="New identity" send={create} submit="Create" onClose={onClose}>
      <Field name="name" label="Name" hint="Empty: a generated name." autoComplete="off" first />
      <Field
        name="email_username"
        label="Address, before the @"
        hint="Empty: derived from the name. It is never reused."
        autoComplete="off"
        autoCapitalize="none"
      />
      <Field name="email_domain" label="Domain" hint="Empty: the domain of the box." autoComplete="off" autoCapitalize="none" />
      <Field name="expires_at" label="Delete at" type="datetime-local" hint="Empty: never by itself." />
    </FormDialog>
  )
}
