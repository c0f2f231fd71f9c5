import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { ApiError, get, type Page, withQuery } from './api.ts'
import { listen, type LiveEvent } from './live.ts'

/** Data of the box, loaded when first shown and again when an event concerns it. */
export interface Loaded<Value> {
  /** Undefined until it is loaded. */
  value: Value | undefined
  error: ApiError | undefined
  reload: () => Promise<void>
}

/** True if an event may have changed the data. */
export type Concerns = (event: LiveEvent) => boolean

/** Events come in bursts: they cause one load, this many milliseconds after the first. */
const gathering = 120

/** The polling interval for changes without an event, in milliseconds. */
export const pollInterval = 15_000

/** One object by its path; null loads nothing. `keep` polls for changes without an event. */
export function useResource<Value>(path: string | null, concerns: Concerns = () => false, keep = false): Loaded<Value> {
  return useReading(path, () => get<Value>(path!), concerns, keep)
}

/** A list by its path, with the pages loaded by `more`. */
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
      (error: unknown) => {
        if (!(error instanceof ApiError)) throw error
        return { name, error }
      },
    )
    // an older answer must not replace a newer one
    if (mine !== turn.current) return
    setState((current) => ('error' in outcome && current.name === name ? { ...current, ...outcome } : outcome))
  }, [name])
  useEffect(() => {
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
