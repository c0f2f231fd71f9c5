import type { JSX } from 'preact'
import type { Card } from '../../../cards/model.ts'
import { CardSheet } from '../cards/card-sheet.tsx'
import { IdentityFrame } from '../identity-frame.tsx'
import { useList } from '../loaded.ts'
import type { ViewProps } from '../views.ts'
import { Listing } from '../widgets/listing.tsx'

/** The cards of one identity. */
export function View({ params: { id = '' } }: ViewProps): JSX.Element {
  return <IdentityFrame id={id}>{() => <Cards key={id} id={id} />}</IdentityFrame>
}

function Cards({ id }: { id: string }): JSX.Element {
  const list = useList<Card>(
    `/v1/identities/${id}/cards`,
    {},
    ({ type, identity_id }) => identity_id === id && type.startsWith('card.'),
    // reported spending emits no event
    true,
  )
  return (
    <Listing
      list={list}
      empty="No card yet. Cards are stored through the API, encrypted by the client: this page never receives a number."
    >
      {(rows) => (
        <ul class="cards">
          {rows.map((card) => (
            <CardSheet key={card.id} card={card} onChange={list.reload} />
          ))}
        </ul>
      )}
    </Listing>
  )
}
