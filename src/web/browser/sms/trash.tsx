import type { JSX } from 'preact'
import type { Sms } from '../../../sms/model.ts'
import { eventsOf, useList } from '../loaded.ts'
import { Time } from '../widgets/format.tsx'
import { Rows } from '../widgets/listing.tsx'
import { TrashActions } from '../widgets/action.tsx'
import { peerOf } from './texts.ts'

export function TrashList({ id }: { id: string }): JSX.Element {
  const path = `/v1/identities/${id}/sms`
  const list = useList<Sms>(path, { trash: true }, eventsOf('sms.', id), true)
  return (
    <Rows class="rows mails" list={list} empty="No text message.">
      {(message) => (
        <li>
          <div class="mail-link">
            <span class="mail-head">
              <span class="mail-who">{peerOf(message)}</span>
              <Time at={message.created_at} />
            </span>
            <span class="mail-snippet">
              {message.direction === 'outbound' && 'You: '}
              {message.body}
            </span>
            <TrashActions path={`${path}/${message.id}`} />
          </div>
        </li>
      )}
    </Rows>
  )
}
