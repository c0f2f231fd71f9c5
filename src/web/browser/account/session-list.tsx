import type { JSX } from 'preact'
import type { SessionEntry } from '../../../accounts/model.ts'
import { remove } from '../api.ts'
import { useList } from '../loaded.ts'
import { announce } from '../widgets/announcer.tsx'
import { ConfirmButton } from '../widgets/dialog.tsx'
import { counted, Mark, Time } from '../widgets/format.tsx'
import { Rows } from '../widgets/listing.tsx'

/** The sessions of the account. */
export function SessionList(): JSX.Element {
  const list = useList<SessionEntry>('/v1/account/sessions')
  const end = async (): Promise<void> => {
    const { count } = await remove<{ count: number }>('/v1/account/sessions')
    await list.reload()
    announce(`${counted(count, 'session')} ended.`)
  }
  return (
    <section class="sheet" aria-labelledby="sessions">
      <div class="head">
        <h2 id="sessions">Sessions</h2>
        <ConfirmButton label="Sign out everywhere else" title="Sign out everywhere else?" action="Sign out elsewhere" run={end}>
          <p>Every session of the account ends but this one.</p>
        </ConfirmButton>
      </div>
      <Rows list={list} empty="None.">
        {({ current, ip, user_agent, last_used_at }) => (
          <li>
            <span class="grow">
              <span class="mono">{ip}</span> {current && <Mark tone="good">this one</Mark>}
              <br />
              <span class="faint">{user_agent}</span>
            </span>
            <span class="faint">
              used <Time at={last_used_at} />
            </span>
          </li>
        )}
      </Rows>
    </section>
  )
}
