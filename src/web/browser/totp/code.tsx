import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { TotpCode, TotpEntry } from '../../../totp/model.ts'
import { get } from '../api.ts'
import { Action } from '../widgets/action.tsx'
import { CopyButton } from '../widgets/copy-button.tsx'

/** The update interval of the ring in milliseconds. */
const pace = 250

/** The code on request, while it is valid: each access is logged. */
export function Code({ entry: { id, identity_id, service_name } }: { entry: TotpEntry }): JSX.Element {
  const [shown, setShown] = useState<{ code: TotpCode; until: number }>()
  const [now, setNow] = useState(0)
  useEffect(() => {
    const timer = shown && setInterval(() => setNow(performance.now()), pace)
    return () => clearInterval(timer)
  }, [shown])
  const left = shown ? (shown.until - now) / 1000 : 0
  useEffect(() => {
    if (shown && left <= 0) setShown(undefined)
  }, [shown, left])
  const read = async (): Promise<void> => {
    const code = await get<TotpCode>(`/v1/identities/${identity_id}/totp/${id}/code`)
    // the clock of this machine may be wrong: only the remaining validity counts
    const at = performance.now()
    setNow(at)
    setShown({ code, until: at + code.remaining_seconds * 1000 })
  }
  const { code = '', period = 30 } = shown?.code ?? {}
  return (
    <span class="code">
      <span role="status">{shown && <strong class="mono">{code}</strong>}</span>
      {shown && (
        <>
          <CopyButton text={code} what={`the code of ${service_name}`} />
          <Ring left={left} of={period} label="Expires in" />
        </>
      )}
      <Action run={read} label={`Show the code of ${service_name}`}>
        Show the code
      </Action>
    </span>
  )
}

const radius = 16
const around = 2 * Math.PI * radius

/** A countdown ring: `left` of `of` seconds. */
export function Ring({ left, of, label }: { left: number; of: number; label: string }): JSX.Element {
  const seconds = Math.max(0, Math.ceil(left))
  return (
    <svg class={`ring ${left <= 5 ? 'high' : ''}`} viewBox="0 0 40 40" role="img" aria-label={`${label}: ${seconds} s`}>
      <circle class="ring-track" cx="20" cy="20" r={radius} />
      <circle
        class="ring-left"
        cx="20"
        cy="20"
        r={radius}
        transform="rotate(-90 20 20)"
        stroke-dasharray={around}
        stroke-dashoffset={around * (1 - Math.min(1, Math.max(0, left / of)))}
      />
      <text x="20" y="24.5" text-anchor="middle">
        {seconds}
      </text>
    </svg>
  )
}
