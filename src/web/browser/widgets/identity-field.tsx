import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { Identity } from '../../../identities/model.ts'
import { useList, useResource, useSearch } from '../loaded.ts'
import { Select } from './form.tsx'
import { Trouble } from './listing.tsx'
import { Link } from '../router.tsx'

interface Props {
  name?: string
  label: string
  hint?: string
  /** The label of the empty choice; omitted: an identity is required. */
  none?: string
  chosen?: string | null
}

const pageSize = 100

type Named = Pick<Identity, 'id' | 'name' | 'email'>

/** Selects an identity, with a search where there are many. The choice stays what it is, whether or not it is among those listed. */
export function IdentityField({ name = 'identity_id', label, hint, none, chosen = null }: Props): JSX.Element {
  const [query, search] = useSearch()
  const [value, setValue] = useState(chosen ?? '')
  const [many, setMany] = useState(false)
  const list = useList<Named>('/v1/identities', { limit: pageSize, query })
  useEffect(() => {
    if (list.hasMore) setMany(true)
  }, [list.hasMore])
  const rows = list.value ?? []
  const isListed = value === '' || rows.some(({ id }) => id === value)
  const isRead = list.value !== undefined || list.error !== undefined
  const { value: unlisted } = useResource<Named>(isListed || !isRead ? null : `/v1/identities/${value}`)
  const first = none === undefined ? rows[0]?.id : undefined
  return (
    <>
      {list.error && <Trouble error={list.error} again={list.reload} />}
      {many && (
        <div class="field">
          <label for={`${name}-search`}>Search identities</label>
          <input id={`${name}-search`} {...search} />
        </div>
      )}
      <Select
        name={name}
        label={label}
        {...(hint === undefined ? {} : { hint })}
        value={value || (first ?? '')}
        onChange={({ currentTarget }) => setValue(currentTarget.value)}
      >
        {none !== undefined && <option value="">{none}</option>}
        {!isListed && <option value={value}>{unlisted ? labelOf(unlisted) : value}</option>}
        {rows.map((row) => (
          <option key={row.id} value={row.id}>
            {labelOf(row)}
          </option>
        ))}
      </Select>
    </>
  )
}

function labelOf({ name, email }: Named): string {
  return `${name} · ${email}`
}

/** A link to an identity, with its name once loaded: that begins when the rest is painted, as a list may have many. */
export function IdentityName({ id }: { id: string }): JSX.Element {
  const [painted, setPainted] = useState(false)
  useEffect(() => setPainted(true), [])
  const { value } = useResource<Identity>(painted ? `/v1/identities/${id}` : null)
  return <Link href={`/identities/${id}/inbox`}>{value?.name ?? id}</Link>
}
