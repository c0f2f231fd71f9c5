import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { type ApiError, get, getText, type Page, patch, requireApiError, withQuery } from './api.ts'
import { listen, type LiveEvent, reread } from './live.ts'

/** Data of the box, loaded when first shown and again when an event concerns it. */
export interface Loaded<Value> {
  value: Value | undefined
  error: ApiError | undefined
  reload: () => Promise<void>
}

/** True if an event may have changed the data. */
type Concerns = (event: LiveEvent) => boolean

/** Events whose names begin so: of one identity, or of any. */
export function eventsOf(prefix: string, identityId?: string): Concerns {
  return ({ type, identity_id }) => type.startsWith(prefix) && (identityId === undefined || identity_id === identityId)
}

/** Events come in bursts: they cause one load, this many milliseconds after the first. */
const gathering = 120

/** The polling interval for changes without an event, in milliseconds. */
export const pollInterval = 15_000

/** One object by its path; null loads nothing. `keep` polls for changes without an event. */
export function useResource<Value>(path: string | null, concerns: Concerns = () => false, keep = false): Loaded<Value> {
  return useReading(path, () => get<Value>(path!), concerns, keep)
}

/** The text of a response that is not JSON. */
export function useText(path: string, headers: Record<string, string> = {}): Loaded<string> {
  return useReading(
    path,
    () => getText(path, headers),
    () => false,
    false,
  )
}

export interface Listed<Row> extends Loaded<Row[]> {
  hasMore: boolean
  more: () => Promise<void>
}

/** A list, loaded page by page; its rows stay visible during a reload. */
export function useList<Row>(
  path: string | null,
  query: Record<string, string | number | boolean | undefined> = {},
  concerns: Concerns = () => false,
  keep = false,
): Listed<Row> {
  const pages = useRef(1)
  const [hasMore, setHasMore] = useState(false)
  const whole = path === null ? null : withQuery(path, query)
  const before = useRef(whole)
  if (before.current !== whole) {
    before.current = whole
    pages.current = 1
  }
  const read = async (): Promise<Row[]> => {
    const rows: Row[] = []
    let cursor: string | null = null
    let more = true
    for (let count = 0; count < pages.current && more; count++) {
      const page: Page<Row> = await get<Page<Row>>(withQuery(path!, { ...query, ...(cursor === null ? {} : { cursor }) }))
      rows.push(...page.data)
      cursor = page.next_cursor
      more = page.has_more
    }
    setHasMore(more)
    return rows
  }
  const loaded = useReading(whole, read, concerns, keep)
  const more = async (): Promise<void> => {
    pages.current++
    await loaded.reload()
  }
  return { ...loaded, hasMore, more }
}

function useReading<Value>(name: string | null, read: () => Promise<Value>, concerns: Concerns, keep: boolean): Loaded<Value> {
  const [state, setState] = useState<{ name: string | null; value?: Value; error?: ApiError }>({ name })
  const latest = useRef({ read, concerns })
  latest.current = { read, concerns }
  const turn = useRef(0)
  const reload = useCallback(async (): Promise<void> => {
    if (name === null) return
    const mine = ++turn.current
    const outcome = await latest.current.read().then(
      (value) => ({ name, value }),
      (error: unknown) => ({ name, error: requireApiError(error) }),
    )
    // an older answer must not replace a newer one
    if (mine !== turn.current) return
    setState((current) => ('error' in outcome && current.name === name ? { ...current, ...outcome } : outcome))
  }, [name])
  // not after the next paint, as effects are otherwise
  useLayoutEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    const soon = (): void => {
      timer ??= setTimeout(() => {
        timer = undefined
        void reload()
      }, gathering)
    }
    const stop = listen((event) => {
      if (event === undefined || latest.current.concerns(event)) soon()
    })
    const looking = keep ? setInterval(() => document.visibilityState === 'visible' && soon(), pollInterval) : undefined
    void reload()
    return () => {
      stop()
      turn.current++
      clearTimeout(timer)
      clearInterval(looking)
    }
  }, [name, keep, reload])
  const current = state.name === name ? state : undefined
  return { value: current?.value, error: current?.error, reload }
}

/** The debounce of a search in milliseconds. */
const quiet = 200

/** What was typed into a search, once typing paused, and the attributes of its field. */
export function useSearch() {
  const [typed, setTyped] = useState('')
  const [query, setQuery] = useState('')
  useEffect(() => {
    const timer = setTimeout(() => setQuery(typed.trim()), quiet)
    return () => clearTimeout(timer)
  }, [typed])
  const onInput = ({ currentTarget }: { currentTarget: HTMLInputElement }): void => setTyped(currentTarget.value)
  return [query, { type: 'search', value: typed, onInput }] as const
}

/** Marks displayed messages below `path` as read, but not one that was marked unread manually, while it is displayed. */
export function useReadMarks(path: string, messages: readonly { id: string; read: boolean; direction: string }[]): void {
  const seen = useRef(new Set<string>())
  useEffect(() => {
    const fresh = messages.filter(({ id, read, direction }) => !read && direction === 'inbound' && !seen.current.has(id))
    if (fresh.length === 0) return
    for (const { id } of fresh) seen.current.add(id)
    // without a mark it is shown as read all the same, and marked at the next display
    Promise.all(fresh.map(({ id }) => patch(`${path}/${id}`, { read: true }))).then(reread, requireApiError)
  }, [path, messages])
}
