import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { withQuery } from '../api.ts'
import { useText } from '../loaded.ts'
import { Trouble } from '../widgets/listing.tsx'

interface Props {
  /** Of the HTML of a message. */
  path: string
  /** Whether remote images are loaded. */
  remote: boolean
}

/**
 * The HTML of a message, in a frame as tall as it. A frame cannot show errors, nor wait for a sign-in: a first call checks that there is something to
 * show.
 */
export function Sheet({ path, remote }: Props): JSX.Element {
  const shown = withQuery(path, { remote: remote || undefined })
  const { value, error, reload } = useText(shown, { Range: 'bytes=0-0' })
  const [height, setHeight] = useState<number | null>()
  if (error && value === undefined) return <Trouble error={error} again={reload} />
  return (
    <div class="mail-sheet">
      {value !== undefined && <Ruler path={withQuery(path, { measure: true })} onMeasured={setHeight} />}
      <iframe
        key={shown}
        class={remote ? 'mail-frame remote' : 'mail-frame'}
        title="The message"
        sandbox="allow-popups allow-popups-to-escape-sandbox"
        referrerpolicy="no-referrer"
        style={height == null ? {} : { height: `${height}px` }}
        src={value === undefined || height === undefined ? undefined : shown}
      />
    </div>
  )
}

/** Milliseconds from the last change of the width to the next measurement. */
const debounce = 150

/**
 * A copy of the message that nobody sees, of the same width. The frame that is seen has an origin of its own and cannot be measured; this one has that
 * of the box, but neither scripts nor requests. `onMeasured` gets null when it cannot be loaded.
 */
function Ruler({ path, onMeasured }: { path: string; onMeasured: (height: number | null) => void }): JSX.Element {
  const frame = useRef<HTMLIFrameElement>(null)
  const [loaded, setLoaded] = useState(false)
  useEffect(() => {
    if (!loaded) return undefined
    let timer: ReturnType<typeof setTimeout> | undefined
    const measure = (): void => onMeasured(heightOf(frame.current!))
    const observer = new ResizeObserver(() => {
      clearTimeout(timer)
      timer = setTimeout(measure, debounce)
    })
    measure()
    observer.observe(frame.current!)
    return () => {
      observer.disconnect()
      clearTimeout(timer)
    }
  }, [loaded, onMeasured])
  return (
    <iframe
      ref={frame}
      class="mail-ruler"
      aria-hidden="true"
      inert
      tabIndex={-1}
      scrolling="no"
      sandbox="allow-same-origin"
      referrerpolicy="no-referrer"
      src={path}
      onLoad={() => setLoaded(true)}
    />
  )
}

/** Pixels of a horizontal scroll bar, and of the borders of the frame. */
const scrollBar = 17
const borders = 2

function heightOf({ contentDocument }: HTMLIFrameElement): number | null {
  if (contentDocument?.contentType !== 'text/html') return null
  const { scrollHeight, scrollWidth, clientWidth } = contentDocument.documentElement
  return scrollHeight + borders + (scrollWidth > clientWidth ? scrollBar : 0)
}
