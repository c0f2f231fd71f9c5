import { once } from 'node:events'
import { request } from 'node:https'
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls'
import type { Appliance } from '../support/appliance.ts'
import { Dialogue } from '../support/smtp.ts'
import { WebhookSink } from '../support/webhook-sink.ts'

/** The serial number of the certificate that a TLS port shows, to who asks for this host. */
export async function shownAt(port: number, host = 'mx.example.test', options: ConnectionOptions = {}): Promise<string> {
  const socket = await secure(port, host, options)
  const { serialNumber } = socket.getPeerX509Certificate()!
  socket.destroy()
  return serialNumber
}

/** A TLS connection; throws when it is not one that the options trust. */
export async function secure(port: number, host: string, options: ConnectionOptions = {}): Promise<TLSSocket> {
  const socket = connect({ host: '127.0.0.1', port, servername: host, rejectUnauthorized: 'ca' in options, ...options })
  await once(socket, 'secureConnect')
  socket.on('error', () => undefined)
  return socket
}

/** An SMTP session under STARTTLS, and the serial number of the certificate it was shown. */
export async function startTls(port: number, options: ConnectionOptions = {}): Promise<{ serial: string; session: Dialogue }> {
  const session = await Dialogue.hello(port)
  await session.say('STARTTLS')
  const socket = await session.upgrade({ servername: 'mx.example.test', ...options })
  return { serial: socket.getPeerX509Certificate()!.serialNumber, session }
}

/** The same, of a session that is not needed any more. */
export async function shownBySmtp(port: number, options: ConnectionOptions = {}): Promise<string> {
  const { serial, session } = await startTls(port, options)
  session.destroy()
  return serial
}

/** The body of what a TLS port of the API answers as this host. */
export function fetchSecurely(port: number, host: string, path: string, ca: string): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const call = request(
      { host: '127.0.0.1', port, servername: host, path, headers: { Host: host }, ca, agent: false },
      (answer) => {
        let body = ''
        answer.setEncoding('utf8').on('data', (text: string) => (body += text))
        answer.once('end', () => resolve({ status: answer.statusCode!, body }))
      },
    )
    call.once('error', reject).end()
  })
}

/** The call's path on the port in the clear, for boxes whose public URL is another. */
export function plainly(box: Appliance, path: string): string {
  return `http://127.0.0.1:${box.app.httpAddresses.plain!.port}${path}`
}

/** A webhook of the operator's that hears these events; the box must let it reach loopback. */
export async function listening(box: Appliance, ...events: string[]): Promise<WebhookSink> {
  const sink = await WebhookSink.start()
  const made = await box.call('POST', plainly(box, '/v1/webhooks'), { url: sink.url, events })
  if (made.status !== 201) throw new Error(`no webhook: ${JSON.stringify(made.body)}`)
  return sink
}

/** Lines of the log with this message. */
export function told(box: Appliance, message: string): Record<string, ReturnType<typeof JSON.parse>>[] {
  return box.logged.map((line) => JSON.parse(line) as Record<string, never>).filter(({ msg }) => msg === message)
}
