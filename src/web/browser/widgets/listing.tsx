import { type ComponentChildren, Fragment, type JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { Listed, Loaded } from '../loaded.ts'
import type { ApiError } from '../api.ts'

interface ListingProps<Row> {
  list: Listed<Row>
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

interface RowsProps<Row> extends Omit<ListingProps<Row>, 'children'> {
  class?: string
  children: (row: Row) => ComponentChildren
}

/** A list whose rows are lines: `children` renders one, as a `<li>`. */
export function Rows<Row extends object>({ list, empty, class: kind = 'rows', children }: RowsProps<Row>): JSX.Element {
  return (
    <Listing list={list} empty={empty}>
      {(rows) => (
        <ul class={kind}>
          {rows.map((row, index) => (
            <Fragment key={'id' in row ? row.id : index}>{children(row)}</Fragment>
          ))}
        </ul>
      )}
    </Listing>
  )
}

interface SectionProps {
  id: string
  title: ComponentChildren
  /** True for one on a ground of its own. */
  sheet?: boolean
  /** Beside the heading. */
  tools?: ComponentChildren
  children: ComponentChildren
}

/** A part of a view with its heading. */
export function Section({ id, title, sheet = false, tools, children }: SectionProps): JSX.Element {
  const heading = <h2 id={id}>{title}</h2>
  return (
    <section class={sheet ? 'sheet' : undefined} aria-labelledby={id}>
      {tools === undefined ? (
        heading
      ) : (
        <div class={sheet ? 'head' : 'head spaced'}>
          {heading}
          <span class="actions">{tools}</span>
        </div>
      )}
      {children}
    </section>
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

interface TableProps {
  label: string
  headings: readonly string[]
  /** Its rows, each a `<tr>`. */
  children: ComponentChildren
}

/** A table that scrolls where it is too wide. */
export function Table({ label, headings, children }: TableProps): JSX.Element {
  return (
    <div class="scrolls" role="region" tabIndex={0} aria-label={label}>
      <table>
        <thead>
          <tr>
            {headings.map((heading, index) => (
              <th key={index} scope="col">
                {heading}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  )
}

/** A name and its value, in a `<dl class="facts">`. */
export function Fact({
  name,
  class: kind,
  children,
}: {
  name: string
  class?: string
  children: ComponentChildren
}): JSX.Element {
  return (
    <>
      <dt>{name}</dt>
      <dd class={kind}>{children}</dd>
    </>
  )
}
