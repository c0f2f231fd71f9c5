import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { connect as connectSecurely, type TLSSocket } from 'node:tls'
import { X509Certificate } from 'node:crypto'
import { Networks } from '../../net/networks.ts'
import { localHeader } from '../../net/proxy-header.ts'

export interface Endpoint {
  host: string
  port: number
}

/** A listener, with the networks from which it expects a PROXY protocol header. */
export interface Place extends Endpoint {
  proxies?: readonly string[]
}

export interface ShownCertificate {
  certificate: X509Certificate
  /** Why clients would not trust it, apart from its name; null when they would. */
  distrust: string | null
}

const timeout = 8000

/** The local address of a listener: loopback for one on all addresses. */
export function within({ host, port }: Endpoint): Endpoint {
  if (host === '0.0.0.0') return { host: '127.0.0.1', port }
  // a listener at `::` has IPv4 too, and containers often have nothing else
  if (host === '::') return { host: hasIpv6Loopback() ? '::1' : '127.0.0.1', port }
  return { host, port }
}

function hasIpv6Loopback(): boolean {
  return Object.values(networkInterfaces()).some((addresses) => addresses?.some(({ address }) => address === '::1'))
}

/** The first line of a listener's greeting, or of its answer to `question`. Throws when none comes within 8 s. */
export async function answerOf(place: Place, { question, tls }: { question?: string; tls?: string } = {}): Promise<string> {
  const socket = await (tls === undefined ? opened(place) : secured(place, tls))
  try {
    return await new LineConversation(socket).say(question)
  } finally {
    socket.destroy()
  }
}

export async function fetchCertificate(place: Place, name: string): Promise<ShownCertificate> {
  const socket = await secured(place, name)
  try {
    return peerCertificate(socket)
  } finally {
    socket.destroy()
  }
}

/** The certificate of an SMTP listener after STARTTLS (RFC 3207). Throws when it is not offered. */
export async function fetchCertificateAfterStartTls(place: Place, name: string): Promise<ShownCertificate> {
  const plain = await opened(place)
  try {
    const talk = new LineConversation(plain)
    await talk.say()
    if (!/^250[- ]STARTTLS\r?$/im.test(await talk.whole('EHLO doctor.invalid'))) throw new Error('it offers no STARTTLS')
    const go = await talk.say('STARTTLS')
    if (!go.startsWith('220')) throw new Error(`it replies to STARTTLS: ${go}`)
    plain.removeAllListeners('data')
    const socket = connectSecurely({ socket: plain, servername: name, rejectUnauthorized: false })
    await within8s(once(socket, 'secureConnect'), socket)
    return peerCertificate(socket)
  } finally {
    plain.destroy()
  }
}

/** A line-based conversation; the caller destroys the socket. */
class LineConversation {
  readonly #socket: Socket
  #text = ''

  constructor(socket: Socket) {
    this.#socket = socket
    socket.setEncoding('latin1').on('data', (chunk: string) => (this.#text = (this.#text + chunk).slice(-16_384)))
  }

  async say(question?: string): Promise<string> {
    return (await this.whole(question)).split(/\r?\n/, 1)[0]!
  }

  /** All lines up to the last of an SMTP reply. */
  async whole(question?: string): Promise<string> {
    this.#text = ''
    if (question !== undefined) this.#socket.write(`${question}\r\n`)
    const isWhole = (): boolean => /^(?:\d{3} |HTTP\/).*\r?\n/m.test(this.#text)
    const closed = once(this.#socket, 'close').then(() => {
      throw new Error(this.#text === '' ? 'it closes the connection without a reply' : `it replies: ${this.#text.slice(0, 100)}`)
    })
    closed.catch(() => undefined)
    while (!isWhole()) await within8s(Promise.race([once(this.#socket, 'data'), closed]), this.#socket)
    return this.#text
  }
}

async function opened(place: Place): Promise<Socket> {
  const socket = connect(within(place))
  // this listener stays: an error without one would end the process
  socket.on('error', () => undefined)
  await within8s(once(socket, 'connect'), socket)
  if (new Networks(place.proxies ?? []).has(socket.localAddress ?? '')) socket.write(localHeader)
  return socket
}

async function secured(place: Place, name: string): Promise<TLSSocket> {
  const socket = connectSecurely({ socket: await opened(place), servername: name, rejectUnauthorized: false })
  socket.on('error', () => undefined)
  await within8s(once(socket, 'secureConnect'), socket)
  return socket
}

function peerCertificate(socket: TLSSocket): ShownCertificate {
  const certificate = socket.getPeerX509Certificate()
  if (!certificate) throw new Error('it presents no certificate')
  const why: unknown = socket.authorizationError
  // the name is checked separately from the issuer
  const named = String(why) === 'ERR_TLS_CERT_ALTNAME_INVALID'
  return { certificate, distrust: socket.authorized || named ? null : String(why) }
}

async function within8s<Value>(work: Promise<Value>, socket: Socket): Promise<Value> {
  const timer = setTimeout(() => socket.destroy(new Error('no answer within 8 s')), timeout)
  const closed = Promise.withResolvers<never>()
  const close = (): void => closed.reject(new Error('the connection was cut off'))
  socket.once('close', close)
  try {
    return await Promise.race([work, closed.promise])
  } finally {
    clearTimeout(timer)
    socket.off('close', close)
  }
}
