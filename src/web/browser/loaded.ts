import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { ApiError, get, type Page, withQuery } from './api.ts'
import { listen, type LiveEvent } from './live.ts'

/** Something of the box, read when it is first shown and again when an event concerns it. */
export interface Loaded<Value> {
  /** Undefined until it was first read. */
  value: Value | undefined
  error: ApiError | undefined
  reload: () => Promise<void>
}

/** Whether an event may have changed what is shown. */
export type Concerns = (event: LiveEvent) => boolean

/** Events come in bursts: they are answered by one reading, so many milliseconds after the first. */
const gathering = 120

/** What changes without an event, a mark on somebody else's screen, is found within so many milliseconds. */
export const glance = 15_000

/** One thing by its path; null reads nothing. `keep` reads it again now and then, for what no event tells. */
export function useThing<Value>(path: string | null, concerns: Concerns = () => false, keep = false): Loaded<Value> {
  return useReading(path, () => get<Value>(path!), concerns, keep)
}

/** A list by its path, as far as `more` was asked for. */
export interface Listed<Row> extends Loaded<Row[]> {
  hasMore: boolean
  more: () => Promise<void>
}

/** A list, read page by page; what was shown stays shown when it is read again. */
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
    setState((shown) => ('error' in outcome && shown.name === name ? { ...shown, ...outcome } : outcome))
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
    const looking = keep ? setInterval(() => document.visibilityState === 'visible' && soon(), glance) : undefined
    void reload()
    return () => {
      stop()
      turn.current++
      clearTimeout(timer)
      clearInterval(looking)
    }
  }, [name, keep, reload])
  const shown = state.name === name ? state : undefined
  return { value: shown?.value, error: shown?.error, reload }
}
