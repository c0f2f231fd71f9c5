import type { JSX } from 'preact'
import type { Card } from '../../../cards/model.ts'
import { CardSheet } from '../cards/card-sheet.tsx'
import { IdentityFrame } from '../identity-frame.tsx'
import { eventsOf, useList } from '../loaded.ts'
import type { ViewProps } from '../views.ts'
import { Rows } from '../widgets/listing.tsx'

export function View({ params: { id = '' } }: ViewProps): JSX.Element {
  return <IdentityFrame id={id}>{() => <Cards key={id} id={id} />}</IdentityFrame>
}

function Cards({ id }: { id: string }): JSX.Element {
  // reported spending emits no event
  const list = useList<Card>(`/v1/identities/${id}/cards`, {}, eventsOf('card.', id), true)
  return (
    <Rows
      class="cards"
      list={list}
      empty="No card yet. Cards are stored through the API, encrypted by the client: this page never receives a number."
    >
      {(card) => <CardSheet card={card} onChange={list.reload} />}
    </Rows>
  )
}
