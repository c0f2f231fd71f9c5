import { type ComponentChildren, createContext, type JSX } from 'preact'
import { useContext } from 'preact/hooks'
import type { Identity } from '../../identities/model.ts'
import { eventsOf, type Loaded, useResource } from './loaded.ts'
import { Link, place } from './router.tsx'
import { views } from './views.ts'
import { CopyButton } from './widgets/copy-button.tsx'
import { WhenLoaded } from './widgets/listing.tsx'
import { Mark } from './widgets/format.tsx'

const Current = createContext<Loaded<Identity> | undefined>(undefined)

/** The identity of the current view; used inside of IdentityFrame. */
export function useIdentity(): Loaded<Identity> {
  return useContext(Current)!
}

/** The heading and tabs above every view of one identity. Its children can rely on a valid id. */
export function IdentityFrame({ id, children }: { id: string; children: (of: Identity) => ComponentChildren }): JSX.Element {
  const concerns = [eventsOf('identity.', id), eventsOf('phone.', id), eventsOf('domain.')]
  const identity = useResource<Identity>(`/v1/identities/${encodeURIComponent(id)}`, (event) =>
    concerns.some((concern) => concern(event)),
  )
  return (
    <Current.Provider value={identity}>
      <WhenLoaded of={identity}>
        {(value) => (
          <>
            <div class="head">
              <h1>
                {value.name} {value.status === 'suspended' && <Mark tone="warn">suspended</Mark>}
              </h1>
              <span>
                <span class="mono">{value.email}</span> <CopyButton text={value.email} what="the address" />
              </span>
            </div>
            {value.can_send_outside === false && <p class="hint">{value.cannot_send_outside_reason}</p>}
            <Tabs id={id} />
            {children(value)}
          </>
        )}
      </WhenLoaded>
    </Current.Provider>
  )
}

function Tabs({ id }: { id: string }): JSX.Element {
  const { path: now } = place.value
  return (
    <nav class="tabs" aria-label="Identity">
      <ul>
        {views.map(({ path, tab }) => {
          if (tab === undefined) return null
          const href = path.replace(':id', encodeURIComponent(id))
          const current = now === href || now.startsWith(`${href}/`) || (tab === 'Inbox' && now === href.replace(/\/inbox$/, ''))
          return (
            <li key={path}>
              <Link href={href} aria-current={current ? 'page' : undefined}>
                {tab}
              </Link>
            </li>
          )
        })}
      </ul>
    </nav>
  )
}
