import { useEffect, useState } from 'preact/hooks'
import { place } from '../router.tsx'

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
