import { once } from 'node:events'
import { onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import type { Appliance } from './appliance.ts'

type Any = ReturnType<typeof JSON.parse>

/** A socket that speaks the protocol by hand: every frame as it came. */
export async function raw(box: Appliance, query: string) {
  const webSocket = new WebSocket(`${box.url.replace('http', 'ws')}/realtime/v1/websocket?${query}`)
  onTestFinished(() => webSocket.terminate())
  const frames: Any[] = []
  const arrived = new EventTarget()
  webSocket.on('message', (data: Buffer) => {
    frames.push(JSON.parse(data.toString()))
    arrived.dispatchEvent(new Event('frame'))
  })
  const closed = new Promise<number>((resolve) => webSocket.once('close', resolve))
  await once(webSocket, 'open')
  return {
    webSocket,
    frames,
    closed,
    say: (frame: unknown) => webSocket.send(typeof frame === 'string' ? frame : JSON.stringify(frame)),
    async next(count: number): Promise<Any[]> {
      while (frames.length < count) await once(arrived, 'frame')
      return frames.splice(0, count)
    },
  }
}

/** The payload of a join with these bindings. */
export const join = (bindings: object[], access_token?: string) => ({
  config: {
    broadcast: { ack: false, self: false },
    presence: { key: '', enabled: false },
    postgres_changes: bindings,
    private: false,
  },
  ...(access_token === undefined ? {} : { access_token }),
})
