import type { JSX } from 'preact'
import type { Reputation, Tier } from '../../../trust/model.ts'
import { useResource } from '../loaded.ts'
import { WhenLoaded } from '../widgets/listing.tsx'
import { Mark } from '../widgets/mark.tsx'
import { Time } from '../widgets/format.tsx'

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

/** The reputation of an agent, and the effect of each component. */
export function ReputationSheet({ agentId, identityId }: { agentId: string; identityId: string }): JSX.Element {
  const reputation = useResource<Reputation>(
    `/v1/agents/${agentId}/reputation`,
    ({ type, identity_id }) => identity_id === identityId && type === 'reputation.updated',
    true,
  )
  return (
    <section class="sheet" aria-labelledby="reputation">
      <h2 id="reputation">Reputation</h2>
      <WhenLoaded of={reputation}>
        {({ score, tier, components, updated_at }) => (
          <>
            <p>
              <strong class="score">{score.toFixed(2)}</strong> of 1 <Mark tone={tones[tier]}>{tier}</Mark>{' '}
              <span class="faint">
                worked out <Time at={updated_at} />; everybody begins at 0.50
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
    </section>
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
