import { signal } from '@preact/signals'
import type { RealtimeToken } from '../../realtime/model.ts'
import type { EventEnvelope } from '../../timeline/model.ts'
import { ApiError, expired, post } from './api.ts'
import { confirmSession } from './session.ts'

/** An event of the box, with any data. */
export type LiveEvent = Omit<EventEnvelope, 'data'> & { data: Record<string, unknown> }

/** The state of the event stream; `lost` while it reconnects. */
export const connection = signal<'connecting' | 'live' | 'lost'>('connecting')

/** Receives each event; undefined means that events may have been missed, so that everything must be loaded again. */
type Listener = (event: LiveEvent | undefined) => void

const listeners = new Set<Listener>()

const beat = 20_000
const timeout = 10_000
const longestPause = 15_000

let since: string | undefined
let failures = 0
let turn = 0
let socket: WebSocket | undefined
let timer: ReturnType<typeof setTimeout> | undefined

/** Returns a function that removes the listener. */
export function listen(listener: Listener): () => void {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

/** Reloads everything shown after a change that emits no event. */
export function reread(): void {
  notify(undefined)
}

/** Follows the events of the account while the page is open. */
export function follow(): void {
  addEventListener('online', () => again(0))
  addEventListener('offline', () => socket && drop(socket))
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState !== 'visible' || expired.value) return
    if (connection.value === 'lost') again(0)
    // a failing call is followed by an error of the connection
    else confirmSession().catch(() => {})
  })
  void connect()
}

async function connect(): Promise<void> {
  // a connection without an answer is replaced; while a sign-in is pending, none is made
  again(timeout)
  if (socket || expired.value) return
  const mine = ++turn
  try {
    if (connection.value !== 'connecting') await confirmSession()
    const { token } = await post<RealtimeToken>('/v1/realtime/token', {}, { idempotent: true })
    if (mine === turn) attach(new WebSocket(`${location.origin.replace(/^http/, 'ws')}/v1/realtime`, ['pillarbox.v1', token]))
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    if (mine === turn) lost()
  }
}

function attach(opened: WebSocket): void {
  clearTimeout(timer)
  socket = opened
  let answered = true
  const pulse = setInterval(() => {
    if (opened.readyState !== WebSocket.OPEN) return
    // a dead network sends nothing: only the missing answer shows it
    if (!answered) return drop(opened)
    answered = false
    opened.send('{"type":"ping"}')
  }, beat)
  const opening = setTimeout(() => {
    if (connection.value !== 'live') drop(opened)
  }, timeout)
  opened.addEventListener('open', () => {
    opened.send(JSON.stringify({ type: 'subscribe', channel: 'agent_events', ...(since === undefined ? {} : { since }) }))
  })
  opened.addEventListener('message', ({ data }) => {
    answered = true
    receive(JSON.parse(String(data)), opened)
  })
  opened.addEventListener('close', () => {
    clearInterval(pulse)
    clearTimeout(opening)
    if (socket === opened) lost()
  })
}

interface Frame {
  type: string
  code?: string
  since?: string | null
  event?: LiveEvent
}

function receive(frame: Frame, from: WebSocket): void {
  if (frame.type === 'subscribed') {
    // data loaded before the first subscription may have changed since; calls after it may have failed
    if (since === undefined || connection.value === 'lost') notify(undefined)
    since ??= frame.since ?? undefined
    failures = 0
    connection.value = 'live'
  }
  if (frame.type === 'event' && frame.event) {
    since = frame.event.id
    notify(frame.event)
  }
  if (frame.type === 'error') {
    if (frame.code === 'since_expired') since = undefined
    from.close()
  }
}

function notify(event: LiveEvent | undefined): void {
  for (const listener of listeners) listener(event)
}

/** Continues without it: on a dead network the close event comes much later. */
function drop(opened: WebSocket): void {
  opened.close()
  if (socket === opened) lost()
}

function lost(): void {
  socket = undefined
  connection.value = 'lost'
  failures++
  again(Math.min(longestPause, 500 * 2 ** Math.min(failures, 10)))
}

function again(pause: number): void {
  if (socket) return
  clearTimeout(timer)
  timer = setTimeout(() => void connect(), pause)
}
