import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { HoldRow } from '../../../policy/model.ts'
import { useList } from '../loaded.ts'
import { Link } from '../router.tsx'
import { Mark, Time } from '../widgets/format.tsx'
import { IdentityName } from '../widgets/identity-field.tsx'
import { Rows } from '../widgets/listing.tsx'
import type { ViewProps } from '../views.ts'
import { HoldView } from '../holds/hold.tsx'

const kinds = { email: 'E-mail', sms: 'Text message', card: 'Reveal of a card', login: 'Reveal of a login' }

/** All holds, or one. */
export function View({ params }: ViewProps): JSX.Element {
  return params['id'] === undefined ? <List /> : <HoldView params={params} />
}

function List(): JSX.Element {
  const [status, setStatus] = useState('open')
  const list = useList<HoldRow>('/v1/holds', { status }, ({ data }) => Boolean(data['hold']), true)
  return (
    <>
      <div class="head">
        <h1>Holds</h1>
        <label>
          Show{' '}
          <select value={status} onChange={({ currentTarget }) => setStatus(currentTarget.value)}>
            <option value="open">open</option>
            <option value="all">all</option>
          </select>
        </label>
      </div>
      <Rows list={list} empty="Nothing is held.">
        {(hold) => (
          <li>
            <span class="grow">
              <Link href={`/holds/${hold.id}`}>
                <strong>{kinds[hold.kind]}</strong>
              </Link>{' '}
              of <IdentityName id={hold.identity_id} />
              <br />
              <span class="faint">
                {[...new Set(hold.reasons.flatMap(({ recipient }) => recipient ?? []))].join(', ')} <Time at={hold.created_at} />
              </span>
            </span>
            {[...new Set(hold.found.map(({ kind }) => kind))].map((kind) => (
              <Mark key={kind} tone="bad">
                {kind}
              </Mark>
            ))}
            {hold.status !== 'open' && <Mark>{hold.status}</Mark>}
          </li>
        )}
      </Rows>
    </>
  )
}
