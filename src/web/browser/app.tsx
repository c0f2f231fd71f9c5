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
  useLayoutEffect(() => void find(), [])
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
  if (arrival) return <Loaded view={arrival} params={{}} />
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
        <Loaded view={here.view} params={here.params} />
      ) : (
        <>
          <h1>Not found</h1>
          <p>There is no page at this address.</p>
        </>
      )}
    </Layout>
  )
}

const loaded = new Map<View['load'], ComponentType<ViewProps>>()

/** A view whose module is evaluated on first use. */
function Loaded({ view: { load }, params }: Found): JSX.Element | null {
  const [, setTurn] = useState(0)
  useLayoutEffect(() => {
    if (loaded.has(load)) return
    const evaluate = async (): Promise<void> => {
      loaded.set(load, (await load()).View)
      setTurn((turn) => turn + 1)
    }
    void evaluate()
  }, [load])
  const Inside = loaded.get(load)
  return Inside ? <Inside params={params} /> : null
}
