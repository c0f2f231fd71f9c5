import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { SessionEntry } from '../../../accounts/model.ts'
import { remove } from '../api.ts'
import { useList } from '../loaded.ts'
import { announce } from '../widgets/announcer.tsx'
import { Confirm } from '../widgets/dialog.tsx'
import { counted, Time } from '../widgets/format.tsx'
import { Listing } from '../widgets/listing.tsx'
import { Mark } from '../widgets/mark.tsx'

/** The sessions of the account. */
export function SessionList(): JSX.Element {
  const list = useList<SessionEntry>('/v1/account/sessions')
  const [asking, setAsking] = useState(false)
  const end = async (): Promise<void> => {
    const { count } = await remove<{ count: number }>('/v1/account/sessions')
    await list.reload()
    announce(`${counted(count, 'session')} ended.`)
  }
  return (
    <section class="sheet" aria-labelledby="sessions">
      <div class="head">
        <h2 id="sessions">Sessions</h2>
        <button type="button" onClick={() => setAsking(true)}>
          Sign out everywhere else
        </button>
      </div>
      <Listing list={list} empty="None.">
        {(rows) => (
          <ul class="rows">
            {rows.map(({ id, current, ip, user_agent, last_used_at }) => (
              <li key={id}>
                <span class="grow">
                  <span class="mono">{ip}</span> {current && <Mark tone="good">this one</Mark>}
                  <br />
                  <span class="faint">{user_agent}</span>
                </span>
                <span class="faint">
                  used <Time at={last_used_at} />
                </span>
              </li>
            ))}
          </ul>
        )}
      </Listing>
      {asking && (
        <Confirm title="Sign out everywhere else?" action="Sign out elsewhere" run={end} onClose={() => setAsking(false)}>
          <p>Every session of the account ends but this one.</p>
        </Confirm>
      )}
    </section>
  )
}
