import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { Identity } from '../../../identities/model.ts'
import { useList, useResource, useSearch } from '../loaded.ts'
import { Select } from './form.tsx'
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

/** Selects an identity, with a search where there are many. */
export function IdentityField({ name = 'identity_id', label, hint, none, chosen = null }: Props): JSX.Element {
  const [query, search] = useSearch()
  const [value, setValue] = useState(chosen ?? '')
  const [many, setMany] = useState(false)
  const list = useList<Pick<Identity, 'id' | 'name' | 'email'>>('/v1/identities', { limit: pageSize, query })
  useEffect(() => {
    if (list.hasMore) setMany(true)
  }, [list.hasMore])
  const rows = list.value ?? []
  const first = none === undefined ? rows[0]?.id : undefined
  const selected = value !== '' && (value === chosen || rows.some(({ id }) => id === value)) ? value : (first ?? '')
  return (
    <>
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
        onChange={({ currentTarget }) => setValue(currentTarget.value)}
      >
        {none !== undefined && <option value="">{none}</option>}
        {chosen !== null && !rows.some(({ id }) => id === chosen) && <option value={chosen}>{chosen}</option>}
        {rows.map(({ id, name: called, email }) => (
          <option key={id} value={id} selected={id === selected}>
            {called} · {email}
          </option>
        ))}
      </Select>
    </>
  )
}

/** A link to an identity, with its name once loaded: that begins when the rest is painted, as a list may have many. */
export function IdentityName({ id }: { id: string }): JSX.Element {
  const [painted, setPainted] = useState(false)
  useEffect(() => setPainted(true), [])
  const { value } = useResource<Identity>(painted ? `/v1/identities/${id}` : null)
  return <Link href={`/identities/${id}/inbox`}>{value?.name ?? id}</Link>
}
