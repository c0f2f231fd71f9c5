import type { JSX } from 'preact'
import type { Agent } from '../../../agents/model.ts'
import { AgentDialog } from '../agents/agent-form.tsx'
import { post } from '../api.ts'
import { eventsOf, useList } from '../loaded.ts'
import { go, Link } from '../router.tsx'
import { DialogButton } from '../widgets/dialog.tsx'
import { Rows } from '../widgets/listing.tsx'
import { Mark, Time } from '../widgets/format.tsx'
import type { ViewProps } from '../views.ts'
import { AgentView } from '../agents/agent.tsx'

/** All agents, or one. */
export function View({ params }: ViewProps): JSX.Element {
  return params['id'] === undefined ? <List /> : <AgentView params={params} />
}

function List(): JSX.Element {
  const list = useList<Agent>('/v1/agents', {}, eventsOf('agent.'))
  return (
    <>
      <div class="head">
        <h1>Agents</h1>
        <DialogButton
          class="primary"
          dialog={(close) => (
            <AgentDialog
              title="New agent"
              submit="Create"
              send={async (input) => go(`/agents/${(await post<Agent>('/v1/agents', input)).id}`)}
              onClose={close}
            />
          )}
        >
          New agent
        </DialogButton>
      </div>
      <Rows
        list={list}
        empty="No agent yet. An agent is the public profile of an identity, with which recipients can look up a sender."
      >
        {({ id, display_name, handle, description, status, created_at }) => (
          <li>
            <span class="grow">
              <Link href={`/agents/${id}`}>
                <strong>{display_name}</strong>
              </Link>{' '}
              <span class="mono faint">{handle}</span> {status === 'suspended' && <Mark tone="warn">suspended</Mark>}
              {description !== null && (
                <>
                  <br />
                  <span class="faint">{description}</span>
                </>
              )}
            </span>
            <span class="faint">
              <Time at={created_at} />
            </span>
          </li>
        )}
      </Rows>
    </>
  )
}
