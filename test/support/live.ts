import { once } from 'node:events'
import { onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import type { Appliance } from './appliance.ts'

type Any = ReturnType<typeof JSON.parse>

/** A client of the plain protocol that remembers all it was sent. */
export interface Live {
  webSocket: WebSocket
  frames: Any[]
  say(frame: unknown): void
  /** Resolves with the frames once so many of a type are there; throws when the socket closes before. */
  until(type: string, count?: number): Promise<Any[]>
  closed: Promise<{ code: number; reason: string }>
}

/** Opens a socket; throws with the status when it is refused. */
export async function live(url: string, protocols: string[] = [], headers: Record<string, string> = {}): Promise<Live> {
  const webSocket = new WebSocket(url, protocols, { headers })
  onTestFinished(() => webSocket.terminate())
  const frames: Any[] = []
  const waiting = new Set<() => void>()
  const wake = (): void => {
    for (const look of waiting) look()
  }
  let gone: { code: number; reason: string } | undefined
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    webSocket.once('close', (code, reason) => {
      gone = { code, reason: reason.toString() }
      resolve(gone)
      wake()
    })
  })
  webSocket.on('message', (data: Buffer) => {
    frames.push(JSON.parse(data.toString()))
    wake()
  })
  await once(webSocket, 'open')
  webSocket.on('error', () => undefined)
  const until = (type: string, count = 1): Promise<Any[]> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        const found = frames.filter((frame) => frame.type === type)
        if (found.length >= count) resolve(found)
        else if (gone) reject(new Error(`closed with ${gone.code} ${gone.reason} after ${JSON.stringify(frames).slice(0, 2000)}`))
        else return
        waiting.delete(look)
      }
      waiting.add(look)
      look()
    })
  return {
    webSocket,
    frames,
    closed,
    until,
    say: (frame) => webSocket.send(typeof frame === 'string' ? frame : JSON.stringify(frame)),
  }
}

/** A token for the box, and where it connects. */
export async function token(
  box: Appliance,
  input: object = {},
  key = box.key,
): Promise<{ token: string; url: string; supabase_url: string }> {
  const { status, body } = await box.call('POST', '/v1/realtime/token', input, { key })
  if (status !== 200) throw new Error(`no token: ${JSON.stringify(body)}`)
  return body as never
}

/** A socket of the box with a token of its own. */
export async function connect(box: Appliance, input: object = {}, key = box.key): Promise<Live> {
  const made = await token(box, input, key)
  return live(`${made.url}?token=${made.token}`)
}

/** Makes an identity. */
export async function identity(box: Appliance, name?: string): Promise<{ id: string; email: string }> {
  const { body } = await box.call('POST', '/v1/identities', name === undefined ? {} : { name })
  return body as never
}

/** Makes an API key. */
export async function keyWith(box: Appliance, input: object): Promise<{ id: string; key: string }> {
  const { body } = await box.call('POST', '/v1/api-keys', input)
  return body as never
}
