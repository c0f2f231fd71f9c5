import { spawn } from 'node:child_process'
import { once } from 'node:events'

export interface Sending {
  host: string
  port: number
  /** Connections, each kept open for all its messages. */
  sessions: number
  messages: number
  /** Recipients are numbered: `1`, `2`, … before this address. */
  to: string
  from: string
  /** Octets of a plain body that the program makes up; or a message that it sends as it is. */
  message: { size: number } | { file: string }
}

/** Sends by Postfix's generator; resolves with the seconds it took, throws when any message was refused. */
export async function send(sending: Sending): Promise<number> {
  const { host, port, sessions, messages, to, from, message } = sending
  const what = 'file' in message ? ['-F', message.file] : ['-l', String(message.size)]
  const options = ['-d', '-N', '-s', String(sessions), '-m', String(messages), '-f', from, '-t', to, '-M', 'mail.sender.test']
  const began = performance.now()
  const child = spawn('smtp-source', [...options, ...what, `${host}:${port}`], { stdio: ['ignore', 'ignore', 'pipe'] })
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
  const [code] = (await once(child, 'close')) as [number | null]
  if (code !== 0 || errors !== '') throw new Error(`smtp-source ended with ${code}: ${errors}`)
  return (performance.now() - began) / 1000
}
