import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
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

/** Data in pages, of which as many are loaded as were asked for. */
export interface Paged<Value> extends Loaded<Value> {
  hasMore: boolean
  /** Loads this many pages more, 1 by default. */
  more: (count?: number) => Promise<void>
}

export type Listed<Row> = Paged<Row[]>

type Query = Record<string, string | number | boolean | undefined>

/** A list, loaded page by page; its rows stay visible during a reload. */
export function useList<Row>(
  path: string | null,
  query: Query = {},
  concerns: Concerns = () => false,
  keep = false,
): Listed<Row> {
  const list = usePages<Page<Row>>(path, query, concerns, keep)
  const value = useMemo(() => list.value?.flatMap(({ data }) => data), [list.value])
  return { ...list, value }
}

/** Answers that have a cursor for the next one: those that were loaded, first to last. */
export function usePages<Part extends Omit<Page<unknown>, 'data'>>(
  path: string | null,
  query: Query,
  concerns: Concerns,
  keep = false,
): Paged<Part[]> {
  const pages = useRef(1)
  const whole = path === null ? null : withQuery(path, query)
  const before = useRef(whole)
  if (before.current !== whole) {
    before.current = whole
    pages.current = 1
  }
  const read = async (): Promise<Part[]> => {
    const parts: Part[] = []
    while (parts.length < pages.current) {
      const cursor = parts.at(-1)?.next_cursor
      const part = await get<Part>(withQuery(path!, { ...query, ...(cursor ? { cursor } : {}) }))
      parts.push(part)
      if (!part.has_more) break
    }
    return parts
  }
  const loaded = useReading(whole, read, concerns, keep)
  const more = async (count = 1): Promise<void> => {
    pages.current += count
    await loaded.reload()
  }
  return { ...loaded, hasMore: loaded.value?.at(-1)?.has_more ?? false, more }
}

function useReading<Value>(name: string | null, read: () => Promise<Value>, concerns: Concerns, keep: boolean): Loaded<Value> {
  const [state, setState] = useState<{ name: string | null; value?: Value; error?: ApiError }>({ name })
  const latest = useRef({ read, concerns })
  latest.current = { read, concerns }
  const turns = useRef({ started: 0, shown: 0 })
  const reload = useCallback(async (): Promise<void> => {
    if (name === null) return
    const mine = ++turns.current.started
    const outcome = await latest.current.read().then(
      (value) => ({ name, value }),
      (error: unknown) => ({ name, error: requireApiError(error) }),
    )
    // an older answer must not replace a newer one; an answer that will be replaced is shown meanwhile
    if (mine < turns.current.shown) return
    turns.current.shown = mine
    setState((current) => ('error' in outcome && current.name === name ? { ...current, ...outcome } : outcome))
  }, [name])
  // not after the next paint, as effects are otherwise
  useLayoutEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    let reading: Promise<void> | undefined
    let outdated = false
    const refresh = (): void => {
      // events may come faster than answers: once there is one, it is read again
      if (reading) {
        outdated = true
        return
      }
      outdated = false
      const mine = reload()
      reading = mine
      void mine.finally(() => {
        if (reading !== mine) return
        reading = undefined
        if (outdated) soon()
      })
    }
    const soon = (): void => {
      timer ??= setTimeout(() => {
        timer = undefined
        refresh()
      }, gathering)
    }
    const stop = listen((event) => {
      // after a lost connection, the answer to an earlier call may never come
      if (event === undefined) reading = undefined
      if (event === undefined || latest.current.concerns(event)) soon()
    })
    const looking = keep ? setInterval(() => document.visibilityState === 'visible' && soon(), pollInterval) : undefined
    refresh()
    const { current: order } = turns
    return () => {
      stop()
      reading = undefined
      order.shown = ++order.started
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

/** Marks displayed messages below `path` as read, in a tab that is visible, but not one that was marked unread manually, while it is displayed. */
export function useReadMarks(path: string, messages: readonly { id: string; read: boolean; direction: string }[]): void {
  const seen = useRef(new Set<string>())
  useEffect(() => {
    const mark = (): void => {
      if (document.visibilityState !== 'visible') return
      const fresh = messages.filter(({ id, read, direction }) => !read && direction === 'inbound' && !seen.current.has(id))
      if (fresh.length === 0) return
      for (const { id } of fresh) seen.current.add(id)
      // without a mark it is shown as read all the same, and marked at the next display
      Promise.all(fresh.map(({ id }) => patch(`${path}/${id}`, { read: true }))).then(reread, requireApiError)
    }
    mark()
    document.addEventListener('visibilitychange', mark)
    return () => document.removeEventListener('visibilitychange', mark)
  }, [path, messages])
}
