import type { ComponentChildren, JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { connection } from './live.ts'
import { Link, place } from './router.tsx'
import { views } from './views.ts'
import { session, signOut } from './session.ts'
import { Action } from './widgets/action.tsx'
import { effect, signal } from '@preact/signals'

export function Layout({ children }: { children: ComponentChildren }): JSX.Element {
  const main = useRef<HTMLElement>(null)
  const here = place.value.path
  const before = useRef(here)
  useEffect(() => {
    // the focused link may be gone: the keyboard focus moves to the new content
    if (before.current !== here && document.activeElement === document.body) main.current?.focus()
    before.current = here
  }, [here])
  return (
    <>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class="top">
        <Link href="/" class="brand">
          Pillarbox
        </Link>
        <nav aria-label="Main">
          <ul>
            {views.map(
              ({ path, navigation }) =>
                navigation !== undefined && (
                  <li key={path}>
                    <Link href={path} aria-current={isAt(path) ? 'page' : undefined}>
                      {navigation}
                    </Link>
                  </li>
                ),
            )}
          </ul>
        </nav>
        <div class="top-end">
          <ThemeSwitch />
          <Action
            kind="plain"
            run={signOut}
            title={session.value ? `${session.value.account.email}, ${session.value.person.role}` : undefined}
          >
            Sign out
          </Action>
        </div>
      </header>
      <div role="status" class="connection">
        {connection.value === 'lost' && <p>The connection to the box was lost. Reconnecting; no events will be missed.</p>}
      </div>
      <main id="main" tabIndex={-1} ref={main}>
        {children}
      </main>
    </>
  )
}

function isAt(path: string): boolean {
  const { path: now } = place.value
  return now === path || (path !== '/' && now.startsWith(`${path}/`))
}

function ThemeSwitch(): JSX.Element {
  return (
    <label class="theme">
      <span>Theme</span>
      <select value={theme.value} onChange={({ currentTarget }) => void (theme.value = currentTarget.value as Theme)}>
        {themes.map((one) => (
          <option key={one} value={one}>
            {one}
          </option>
        ))}
      </select>
    </label>
  )
}

const themes = ['auto', 'light', 'dark'] as const
type Theme = (typeof themes)[number]

const name = 'pillarbox theme'

/** The theme; `auto` follows the system. Stored by this browser. */
const theme = signal<Theme>(kept())

effect(() => {
  document.documentElement.dataset['theme'] = theme.value
  try {
    localStorage.setItem(name, theme.value)
  } catch {
    // without local storage the choice is not kept
  }
})

function kept(): Theme {
  try {
    const value = localStorage.getItem(name)
    return themes.find((one) => one === value) ?? 'auto'
  } catch {
    return 'auto'
  }
}
