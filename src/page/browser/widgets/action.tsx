import type { ComponentChildren, JSX } from 'preact'
import { useState } from 'preact/hooks'
import { ApiError } from '../api.ts'
import { announce } from './announcer.tsx'

interface ActionProps {
  run: () => Promise<unknown>
  /** What is said once it is done. */
  done?: string
  kind?: 'primary' | 'danger' | 'plain' | undefined
  title?: string | undefined
  children: ComponentChildren
}

/** A button that does something at once, and says what came of it; what goes wrong is said in the API's words. */
export function Action({ run, done, kind, title, children }: ActionProps): JSX.Element {
  const [busy, setBusy] = useState(false)
  const act = async (): Promise<void> => {
    setBusy(true)
    try {
      await run()
      if (done !== undefined) announce(done)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      announce(error.message)
    } finally {
      setBusy(false)
    }
  }
  return (
    <button type="button" class={kind ?? ''} title={title} disabled={busy} aria-busy={busy} onClick={() => void act()}>
      {children}
    </button>
  )
}
