import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { Agent } from '../../../agents/model.ts'
import { AgentDialog } from '../agents/agent-form.tsx'
import { ReputationSheet } from '../agents/reputation.tsx'
import { patch, remove } from '../api.ts'
import { useResource } from '../loaded.ts'
import { go, Link } from '../router.tsx'
import type { ViewProps } from '../views.ts'
import { announce } from '../widgets/announcer.tsx'
import { CopyButton } from '../widgets/copy-button.tsx'
import { Confirm } from '../widgets/dialog.tsx'
import { IdentityName } from '../widgets/identity-field.tsx'
import { WhenLoaded } from '../widgets/listing.tsx'
import { Mark } from '../widgets/mark.tsx'

/** One agent: its public profile, and its reputation. */
export function View({ params: { id = '' } }: ViewProps): JSX.Element {
  const path = `/v1/agents/${encodeURIComponent(id)}`
  const agent = useResource<Agent>(path, ({ type, data }) => type.startsWith('agent.') && data['id'] === id)
  return (
    <>
      <p>
        <Link href="/agents">All agents</Link>
      </p>
      <WhenLoaded of={agent}>
        {(value) => (
          <>
            <div class="head">
              <h1>{value.display_name}</h1>
              {value.status === 'suspended' && <Mark tone="warn">suspended</Mark>}
            </div>
            <Profile agent={value} path={path} onChange={agent.reload} />
            <ReputationSheet agentId={value.id} identityId={value.identity_id} />
          </>
        )}
      </WhenLoaded>
    </>
  )
}

interface ProfileProps {
  agent: Agent
  path: string
  onChange: () => Promise<void>
}

function Profile({ agent, path, onChange }: ProfileProps): JSX.Element {
  const [asking, setAsking] = useState<'change' | 'delete'>()
  const close = (): void => setAsking(undefined)
  const { handle, did, display_name, description, capabilities, links, identity_id } = agent
  return (
    <section class="sheet" aria-labelledby="profile">
      <h2 id="profile">Profile</h2>
      {description !== null && <p class="breaks">{description}</p>}
      <dl class="facts">
        <dt>Handle</dt>
        <dd class="mono">{handle}</dd>
        <dt>DID</dt>
        <dd>
          <span class="mono">{did}</span> <CopyButton text={did} what="the DID" />
        </dd>
        <dt>Identity</dt>
        <dd>
          <IdentityName id={identity_id} />
        </dd>
        {capabilities.length > 0 && (
          <>
            <dt>Can do</dt>
            <dd>{capabilities.join(', ')}</dd>
          </>
        )}
        {links.length > 0 && (
          <>
            <dt>Links</dt>
            <dd>
              <ul class="links">
                {links.map(({ name, url }) => (
                  <li key={`${name} ${url}`}>
                    {name}:{' '}
                    <a href={url} target="_blank" rel="noopener noreferrer">
                      {url}
                    </a>
                  </li>
                ))}
              </ul>
            </dd>
          </>
        )}
        <dt>Documents</dt>
        <dd>
          <a href={`${path}/did.json`} target="_blank" rel="noopener">
            DID document
          </a>
          {', '}
          <a href={`${path}/agent-card.json`} target="_blank" rel="noopener">
            agent card
          </a>
        </dd>
      </dl>
      <div class="actions below">
        <button type="button" onClick={() => setAsking('change')}>
          Change
        </button>
        <button type="button" class="danger" onClick={() => setAsking('delete')}>
          Delete
        </button>
      </div>
      {asking === 'change' && (
        <AgentDialog
          title={`Change ${display_name}`}
          agent={agent}
          submit="Change"
          send={async (input) => {
            await patch(path, input)
            await onChange()
            announce(`${display_name} was changed.`)
            close()
          }}
          onClose={close}
        />
      )}
      {asking === 'delete' && (
        <Confirm
          title={`Delete the agent ${display_name}?`}
          action="Delete"
          run={async () => {
            await remove(path)
            announce(`The agent ${display_name} was deleted.`)
            go('/agents')
          }}
          onClose={close}
        >
          <p>
            Its documents are gone, its DID resolves no more, and <span class="mono">{handle}</span> is nobody’s ever after. The
            identity stays.
          </p>
        </Confirm>
      )}
    </section>
  )
}
