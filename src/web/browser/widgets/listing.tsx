import type { ComponentChildren, JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { Listed, Loaded } from '../loaded.ts'
import { Trouble } from './trouble.tsx'

interface ListingProps<Row> {
  list: Listed<Row>
  /** What is said when there is nothing. */
  empty: ComponentChildren
  /** The rows, once there are some: usually a `<ul>` or a `<table>`. */
  children: (rows: Row[]) => ComponentChildren
}

/** A list as it comes: waiting, empty, wrong, or rows with a button for more. */
export function Listing<Row>({ list, empty, children }: ListingProps<Row>): JSX.Element {
  const [busy, setBusy] = useState(false)
  const more = async (): Promise<void> => {
    setBusy(true)
    await list.more().finally(() => setBusy(false))
  }
  return (
    <Awaited of={list}>
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
    </Awaited>
  )
}

/** One thing as it comes: waiting, wrong, or there. What was read stays shown when reading it again fails. */
export function Awaited<Value>({
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
