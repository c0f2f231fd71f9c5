import type { ComponentType, JSX } from 'preact'
import { useEffect, useLayoutEffect, useState } from 'preact/hooks'
import { type ApiError, expired, requireApiError } from './api.ts'
import { Layout } from './layout.tsx'
import { follow } from './live.ts'
import { match, place } from './router.tsx'
import { arrivals, type View, type ViewProps, views } from './views.ts'
import { findSession, session } from './session.ts'
import { SignInAgain, SignInPage } from './sign-in.tsx'
import { Announcer } from './widgets/announcer.tsx'
import { Trouble } from './widgets/listing.tsx'

/** The page: the sign-in form, or the view of the current path. */
export function App(): JSX.Element {
  const [error, setError] = useState<ApiError>()
  const find = (): Promise<void> =>
    findSession().then(
      () => setError(undefined),
      (thrown: unknown) => setError(requireApiError(thrown)),
    )
  // not after the next paint, as effects are otherwise
  useLayoutEffect(() => {
    // loads the view while the session is checked
    found(place.value.path)
      ?.view.load()
      .catch(() => {})
    void find()
  }, [])
  const signedIn = session.value !== null && session.value !== undefined
  useEffect(() => {
    if (signedIn) follow()
  }, [signedIn])
  if (error) {
    return (
      <main class="centered">
        <Trouble error={error} again={find} />
      </main>
    )
  }
  if (session.value === undefined) return <main class="centered" aria-busy="true" />
  return (
    <>
      <Content />
      {session.value !== null && expired.value && <SignInAgain />}
      <Announcer />
    </>
  )
}

function Content(): JSX.Element {
  const arrival = arrivals.find(({ path }) => path === place.value.path)
  if (arrival) return <Fetched view={arrival} params={{}} />
  return session.value === null ? <SignInPage /> : <CurrentView />
}

interface Found {
  view: View
  params: Record<string, string>
}

function found(path: string): Found | undefined {
  for (const view of views) {
    const params = match(view.path, path)
    if (params) return { view, params }
  }
  return undefined
}

function CurrentView(): JSX.Element {
  const here = found(place.value.path)
  useEffect(() => {
    document.title = `${here?.view.title ?? 'Not found'} · Pillarbox`
  }, [here?.view.title])
  return (
    <Layout>
      {here ? (
        <Fetched view={here.view} params={here.params} />
      ) : (
        <>
          <h1>Not found</h1>
          <p>There is no page at this address.</p>
        </>
      )}
    </Layout>
  )
}

const fetched = new Map<View['load'], ComponentType<ViewProps>>()

/** A view whose module is loaded on first use. */
function Fetched({ view, params }: Found): JSX.Element {
  const [, setTurn] = useState(0)
  const [failed, setFailed] = useState(false)
  const { load } = view
  const Inside = fetched.get(load)
  useLayoutEffect(() => {
    setFailed(false)
    if (fetched.has(load)) return undefined
    let current = true
    const fetch = async (): Promise<void> => {
      try {
        fetched.set(load, (await load()).View)
        setTurn((turn) => turn + 1)
      } catch {
        if (current) setFailed(true)
      }
    }
    void fetch()
    return () => {
      current = false
    }
  }, [load])
  if (Inside) return <Inside params={params} />
  if (!failed) return <p class="waiting">Loading…</p>
  return (
    <p class="trouble" role="alert">
      This part of the page could not be loaded. <a href={place.value.path}>Reload the page</a>
    </p>
  )
}
