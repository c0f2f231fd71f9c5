import type { JSX } from 'preact'
import type { Sms } from '../../../sms/model.ts'
import { post, remove } from '../api.ts'
import { reread } from '../live.ts'
import { eventsOf, useList } from '../loaded.ts'
import { Action } from '../widgets/action.tsx'
import { Time } from '../widgets/format.tsx'
import { Rows } from '../widgets/listing.tsx'
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
            <span class="actions">
              <Action run={() => post(`${path}/${message.id}/restore`).then(reread)} done="Restored.">
                Restore
              </Action>
              <Action run={() => remove(`${path}/${message.id}?purge=true`).then(reread)} done="Permanently deleted.">
                Delete permanently
              </Action>
            </span>
          </div>
        </li>
      )}
    </Rows>
  )
}
