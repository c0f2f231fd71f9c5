import { signal } from '@preact/signals'
import type { ComponentChildren, JSX, PartialAnchorHTMLAttributes } from 'preact'
import { useEffect, useState } from 'preact/hooks'

interface Place {
  path: string
  query: URLSearchParams
}

export const place = signal<Place>(here())

addEventListener('popstate', () => {
  place.value = here()
})

function here(): Place {
  return { path: location.pathname, query: new URLSearchParams(location.search) }
}

/** Navigates within the page; `replace` adds no history entry. */
export function go(href: string, replace = false): void {
  if (replace) history.replaceState(null, '', href)
  else history.pushState(null, '', href)
  place.value = here()
}

/** The parameters of a path for a pattern such as `/identities/:id`; undefined without a match. */
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

/** A link within the page; with a modifier key the browser handles it. */
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

function linkHere(): URLSearchParams {
  return new URLSearchParams(location.hash.slice(1))
}

/** What the link to a view has after its `#`. It has a secret: it is removed from the URL and the history. */
export function useLink(path: string): URLSearchParams {
  const [link, setLink] = useState(linkHere)
  useEffect(() => {
    const given = linkHere()
    if (!given.has('token')) return
    setLink(given)
    history.replaceState(null, '', path)
  }, [place.value])
  return link
}
