import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { freePort } from '../peers/postfix.ts'

/** Postfix's own sink: it takes every message and throws it away. */
export interface SmtpSink {
  port: number
  /** Messages taken so far. */
  readonly taken: number
  /** Resolves with the time (of `performance.now()`) at which so many were taken in all; throws after a minute without one. */
  until(count: number): Promise<number>
  stop(): void
}

const timeout = 60_000

export async function startSmtpSink(): Promise<SmtpSink> {
  const port = await freePort()
  const child = spawn('smtp-sink', [...(process.getuid?.() === 0 ? ['-u', 'nobody'] : []), '-c', `127.0.0.1:${port}`, '1000'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let taken = 0
  child.stdout.setEncoding('latin1').on('data', (text: string) => {
    const counts = text.match(/mesg=(\d+)/g)
    if (counts) taken = Number(counts.at(-1)!.slice('mesg='.length))
  })
  for (let wait = 0; !(await isOpen(port)); wait++) {
    if (wait > 100) throw new Error('smtp-sink did not start')
    await pause(50)
  }
  return {
    port,
    get taken() {
      return taken
    },
    async until(count) {
      let [last, since] = [taken, performance.now()]
      const isThere = (): boolean => taken >= count
      while (!isThere()) {
        await Promise.race([once(child.stdout, 'data'), pause(1000)])
        if (taken > last) [last, since] = [taken, performance.now()]
        else if (performance.now() - since > timeout) throw new Error(`smtp-sink has ${taken} of ${count} messages`)
      }
      return performance.now()
    },
    stop: () => void child.kill(),
  }
}

async function isOpen(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  const open = await once(socket, 'connect').then(
    () => true,
    () => false,
  )
  socket.destroy()
  return open
}
