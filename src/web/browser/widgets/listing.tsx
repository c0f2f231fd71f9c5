import type { ComponentChildren, JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { Listed, Loaded } from '../loaded.ts'
import type { ApiError } from '../api.ts'

interface ListingProps<Row> {
  list: Listed<Row>
  /** The text of an empty list. */
  empty: ComponentChildren
  /** Renders the rows, usually as a `<ul>` or a `<table>`. */
  children: (rows: Row[]) => ComponentChildren
}

/** A list in any state: loading, empty, failed, or rows with a button for more. */
export function Listing<Row>({ list, empty, children }: ListingProps<Row>): JSX.Element {
  const [busy, setBusy] = useState(false)
  const more = async (): Promise<void> => {
    setBusy(true)
    await list.more().finally(() => setBusy(false))
  }
  return (
    <WhenLoaded of={list}>
      {(rows) => (
        <>
          {rows.length === 0 ? <div class="empty">{empty}</div> : children(rows)}
          {list.hasMore && (
            <p class="more">
              <button type="button" disabled={busy} onClick={() => void more()}>
                More
              </button>
            </p>
          )}
        </>
      )}
    </WhenLoaded>
  )
}

/** An object in any state: loading, failed, or loaded. The data stays visible when a reload fails. */
export function WhenLoaded<Value>({
  of: { value, error, reload },
  children,
}: {
  of: Loaded<Value>
  children: (value: Value) => ComponentChildren
}): JSX.Element {
  return (
    <>
      {error && <Trouble error={error} again={reload} />}
      {value === undefined ? !error && <p class="waiting">Loading…</p> : children(value)}
    </>
  )
}

/** An API error, with a retry button. */
export function Trouble({ error, again }: { error: ApiError; again?: () => Promise<void> }): JSX.Element {
  return (
    <div class="trouble" role="alert">
      <p>{error.message}</p>
      {again && (
        <button type="button" onClick={() => void again()}>
          Try again
        </button>
      )}
    </div>
  )
}
