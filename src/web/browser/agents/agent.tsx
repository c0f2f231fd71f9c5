import type { JSX } from 'preact'
import type { Agent } from '../../../agents/model.ts'
import { AgentDialog } from './agent-form.tsx'
import { patch, remove } from '../api.ts'
import { eventsOf, useResource } from '../loaded.ts'
import { go, Link } from '../router.tsx'
import type { ViewProps } from '../views.ts'
import { CopyButton } from '../widgets/copy-button.tsx'
import { ConfirmButton, DialogButton } from '../widgets/dialog.tsx'
import { IdentityName } from '../widgets/identity-field.tsx'
import { Fact, Section, WhenLoaded } from '../widgets/listing.tsx'
import { Mark, Time } from '../widgets/format.tsx'
import type { Reputation, Tier } from '../../../trust/model.ts'

export function AgentView({ params: { id = '' } }: ViewProps): JSX.Element {
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

function Profile({ agent, path, onChange }: { agent: Agent; path: string; onChange: () => Promise<void> }): JSX.Element {
  const { handle, did, display_name, description, capabilities, links, identity_id } = agent
  return (
    <Section sheet id="profile" title="Profile">
      {description !== null && <p class="breaks">{description}</p>}
      <dl class="facts">
        <Fact name="Handle" class="mono">
          {handle}
        </Fact>
        <Fact name="DID">
          <span class="mono">{did}</span> <CopyButton text={did} what="the DID" />
        </Fact>
        <Fact name="Identity">
          <IdentityName id={identity_id} />
        </Fact>
        {capabilities.length > 0 && <Fact name="Capabilities">{capabilities.join(', ')}</Fact>}
        {links.length > 0 && (
          <Fact name="Links">
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
          </Fact>
        )}
        <Fact name="Documents">
          <a href={`${path}/did.json`} target="_blank" rel="noopener">
            DID document
          </a>
          {', '}
          <a href={`${path}/agent-card.json`} target="_blank" rel="noopener">
            agent card
          </a>
        </Fact>
      </dl>
      <div class="actions below">
        <DialogButton
          dialog={(close) => (
            <AgentDialog
              title={`Change ${display_name}`}
              agent={agent}
              submit="Change"
              done={`${display_name} was changed.`}
              send={(input) => patch(path, input).then(onChange)}
              onClose={close}
            />
          )}
        >
          Change
        </DialogButton>
        <ConfirmButton
          label="Delete"
          kind="danger"
          title={`Delete the agent ${display_name}?`}
          action="Delete"
          done={`The agent ${display_name} was deleted.`}
          run={() => remove(path).then(() => go('/agents'))}
        >
          <p>
            Its documents are removed, its DID no longer resolves, and <span class="mono">{handle}</span> is never reused. The
            identity stays.
          </p>
        </ConfirmButton>
      </div>
    </Section>
  )
}

const names: Record<string, string> = {
  replies: 'Replies',
  reports_positive: 'Good reports',
  deliveries: 'Deliveries',
  age: 'Age',
  verified_domain: 'Verified domain',
  tokens: 'Tokens',
  bounces: 'Bounces',
  complaints: 'Complaints',
  reports_negative: 'Bad reports',
}

const tones: Record<Tier, 'good' | undefined> = { bronze: undefined, silver: undefined, gold: 'good', platinum: 'good' }

function ReputationSheet({ agentId, identityId }: { agentId: string; identityId: string }): JSX.Element {
  const reputation = useResource<Reputation>(`/v1/agents/${agentId}/reputation`, eventsOf('reputation.updated', identityId), true)
  return (
    <Section sheet id="reputation" title="Reputation">
      <WhenLoaded of={reputation}>
        {({ score, tier, components, updated_at }) => (
          <>
            <p>
              <strong class="score">{score.toFixed(2)}</strong> of 1 <Mark tone={tones[tier]}>{tier}</Mark>{' '}
              <span class="faint">
                computed <Time at={updated_at} />; every identity starts at 0.50
              </span>
            </p>
            <ul class="components">
              {components.map((component) => (
                <ComponentLine key={component.name} component={component} />
              ))}
            </ul>
          </>
        )}
      </WhenLoaded>
    </Section>
  )
}

/** The largest effect of one component: half the width of its bar. */
const maxEffect = 0.5
const side = 50

function ComponentLine({ component }: { component: Reputation['components'][number] }): JSX.Element {
  const { name, effect, explanation } = component
  const long = (Math.min(maxEffect, Math.abs(effect)) / maxEffect) * side
  return (
    <li>
      <div class="bar-words">
        <span>{names[name] ?? name.replaceAll('_', ' ')}</span>
        <span>{effect === 0 ? 'nothing' : `${effect > 0 ? '+' : '−'}${Math.abs(effect).toFixed(3)}`}</span>
      </div>
      <svg class="effect" viewBox={`0 0 ${2 * side} 6`} preserveAspectRatio="none" aria-hidden="true">
        <rect class="effect-track" x="0" y="0" width={2 * side} height="6" />
        <rect class={effect < 0 ? 'bad' : ''} x={effect < 0 ? side - long : side} y="0" width={long} height="6" />
        <rect class="effect-middle" x={side - 0.15} y="0" width="0.3" height="6" />
      </svg>
      <p class="hint">{explanation}</p>
    </li>
  )
}
