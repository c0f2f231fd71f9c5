import { signal } from '@preact/signals'
import type { ComponentChildren, JSX, PartialAnchorHTMLAttributes } from 'preact'

interface Place {
  path: string
  query: URLSearchParams
}

/** Where we are. */
export const place = signal<Place>(here())

addEventListener('popstate', () => {
  place.value = here()
})

function here(): Place {
  return { path: location.pathname, query: new URLSearchParams(location.search) }
}

/** Goes to a place of this page; `replace` leaves no step to come back to. */
export function go(href: string, replace = false): void {
  if (replace) history.replaceState(null, '', href)
  else history.pushState(null, '', href)
  place.value = here()
}

/** What the parameters of `/identities/:id` are in a path; undefined where it is another place. */
export function match(pattern: string, path: string): Record<string, string> | undefined {
  const wanted = pattern.split('/')
  const given = path.replace(/(?<=.)\/$/, '').split('/')
  if (wanted.length !== given.length) return undefined
  const params: Record<string, string> = {}
  for (const [index, segment] of wanted.entries()) {
    const one = given[index]!
    if (segment.startsWith(':')) params[segment.slice(1)] = decoded(one)
    else if (segment !== one) return undefined
  }
  return params
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

interface LinkProps extends Omit<PartialAnchorHTMLAttributes<HTMLAnchorElement>, 'href' | 'role'> {
  href: string
  children: ComponentChildren
}

/** A link within the page; with a key held down it opens elsewhere, as links do. */
export function Link({ href, children, ...rest }: LinkProps): JSX.Element {
  const follow = (event: MouseEvent): void => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    event.preventDefault()
    go(href)
  }
  return (
    <a {...rest} href={href} onClick={follow}>
      {children}
    </a>
  )
}
