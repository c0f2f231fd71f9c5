import type { X509Certificate } from 'node:crypto'
import { createRequire } from 'node:module'
import { isIP } from 'node:net'
import { Duplex } from 'node:stream'
import {
  connect,
  createSecureContext,
  getCACertificates,
  type SecureContext,
  setDefaultCACertificates,
  type TLSSocket,
} from 'node:tls'
import { parentPort } from 'node:worker_threads'
import { clientTls, limitHandshake } from './handshake.ts'

/** A TLSA record (RFC 6698 2.1), as mx-connect takes it. */
export interface Tlsa {
  usage: number
  selector: number
  mtype: number
  cert: Uint8Array
}

/** How a server is spoken to. */
export interface TlsOptions {
  /** The name that its certificate is for, or its address. */
  hostname: string
  /** True if the handshake fails without a valid certificate for the name. */
  verify: boolean
  /** Certificate authorities besides the default ones, in PEM. */
  ca?: string | undefined
  /** Records that its certificate has to match (RFC 7672), of usage 2 or 3. */
  tlsa?: readonly Tlsa[] | undefined
  /** The domain whose mail it takes: a certificate by an authority of the records may be for it. */
  domain?: string | undefined
}

/** What a handshake found. */
export interface TlsFacts {
  version: string
  cipher: string
  /** True if the certificate is valid for the name. */
  authorized: boolean
  /** The code of OpenSSL or Node.js for why it is not. */
  flaw: string | null
  /** Why the certificate does not match the TLSA records; null if it does, or if there are none. */
  daneFailure: string | null
}

/** The authorities that certificates are verified by, unless a connection has others besides. */
export interface TlsAuthorities {
  authorities: readonly string[]
}

/** Messages to the thread: bytes that the server sent (`sealed`), text for it, and how many bytes of text were read. */
export type TlsOrder = { id: number } & (
  | { open: TlsOptions & { remoteAddress: string } }
  | { sealed: Uint8Array | null }
  | { text: Uint8Array | null }
  | { sent: true }
  | { read: number }
  | { close: true }
)

/** Messages from the thread: bytes for the server, its text, `written` when the last text was taken, and how many bytes of the server were read. */
export type TlsReport = { id: number } & (
  | { sealed: Uint8Array | null }
  | { facts: TlsFacts }
  | { text: Uint8Array | null }
  | { written: true }
  | { read: number }
  | { failed: { message: string; code?: string | undefined } }
)

/** Bytes of text that the other thread has not read, above which no more is sent there. */
const window = 256 * 1024

const connections = new Map<number, Connection>()
const contexts = new Map<string, SecureContext>()

/** One connection, of which the other thread has the socket. */
class Connection {
  readonly #id: number
  readonly #carrier: Duplex
  readonly #client: TLSSocket
  /** Called when what was sent last is on its way. */
  #sent: (() => void) | undefined
  /** Bytes of the server that are not yet read. */
  #owed = 0
  #unread = 0

  constructor(id: number, options: TlsOptions & { remoteAddress: string }) {
    const { hostname, verify, ca = '', remoteAddress } = options
    this.#id = id
    this.#carrier = Object.assign(
      new Duplex({
        read: () => this.#takeMore(),
        write: (chunk: Buffer, _encoding, done) => {
          this.#sent = done
          post({ id, sealed: chunk })
        },
        final: (done) => {
          post({ id, sealed: null })
          done()
        },
      }),
      { remoteAddress },
    )
    const { stream, complete } = limitHandshake(this.#carrier)
    this.#client = connect({
      socket: stream,
      host: hostname,
      servername: isIP(hostname) > 0 ? '' : hostname,
      rejectUnauthorized: verify,
      secureContext: contextOf(ca),
    })
    this.#client.once('secureConnect', () => {
      complete(this.#client)
      post({ id, facts: factsOf(this.#client, options) })
    })
    this.#client.on('readable', () => this.#pass())
    this.#client.once('end', () => post({ id, text: null }))
    this.#client.once('error', (error: NodeJS.ErrnoException) => {
      post({ id, failed: { message: error.message, code: error.code } })
      this.close()
    })
    this.#client.once('close', () => this.close())
  }

  take(order: TlsOrder): void {
    if ('sealed' in order) {
      this.#owed += order.sealed?.length ?? 0
      this.#carrier.push(order.sealed)
    } else if ('sent' in order) {
      const sent = this.#sent
      this.#sent = undefined
      sent?.()
    } else if ('read' in order) {
      this.#unread -= order.read
      this.#pass()
    } else if ('text' in order) {
      if (order.text === null) this.#client.end()
      else this.#client.write(order.text, () => post({ id: this.#id, written: true }))
    } else this.close()
  }

  close(): void {
    connections.delete(this.#id)
    this.#client.destroy()
    this.#carrier.destroy()
  }

  /** Passes on all text that there is: a server can send it in any number of records. */
  #pass(): void {
    const text = this.#unread > window ? null : (this.#client.read() as Buffer | null)
    if (text === null) return
    this.#unread += text.length
    post({ id: this.#id, text })
  }

  #takeMore(): void {
    if (this.#owed > 0) post({ id: this.#id, read: this.#owed })
    this.#owed = 0
  }
}

function contextOf(ca: string): SecureContext {
  let context = contexts.get(ca)
  if (!context) {
    context = createSecureContext({ ...clientTls, ...(ca === '' ? {} : { ca: [...getCACertificates('default'), ca] }) })
    // one context each of a few settings: each takes memory outside of the heap
    if (contexts.size >= 16) contexts.clear()
    contexts.set(ca, context)
  }
  return context
}

function factsOf(client: TLSSocket, options: TlsOptions): TlsFacts {
  // the types say Error, but it is the code for a certificate, and an error for its name
  const flaw = client.authorizationError as unknown as NodeJS.ErrnoException | string | null
  return {
    version: client.getProtocol() ?? 'unknown',
    cipher: client.getCipher().name,
    authorized: client.authorized,
    flaw: typeof flaw === 'string' ? flaw : (flaw?.code ?? null),
    daneFailure: options.tlsa === undefined ? null : daneFailure(client, options, options.tlsa),
  }
}

type DaneVerifier = (hostname: string, leaf: X509Certificate, issuers: X509Certificate[]) => Error | undefined

/** Why the certificate matches none of the records (RFC 7672 3.1); null if it does. */
function daneFailure(client: TLSSocket, { hostname, domain }: TlsOptions, tlsa: readonly Tlsa[]): string | null {
  const chain: X509Certificate[] = []
  for (let one = client.getPeerX509Certificate(); one && chain.length < 10; one = one.issuerCertificate) chain.push(one)
  const [leaf, ...issuers] = chain
  if (!leaf) return 'it presented no certificate'
  const { createDaneVerifier } = createRequire(import.meta.url)('mx-connect/lib/dane.js') as {
    createDaneVerifier: (records: Tlsa[]) => DaneVerifier
  }
  /** Verifies by the records of one usage. */
  const failureBy = (usage: number, authorities: X509Certificate[]): string | null => {
    const records = tlsa.filter((record) => record.usage === usage)
    // the library takes no records for none that must match
    if (records.length === 0) return 'it has no TLSA records that can be used'
    const verify = createDaneVerifier(records.map((record) => ({ ...record, cert: Buffer.from(record.cert) })))
    return verify(hostname, leaf, authorities)?.message.slice(0, 300) ?? null
  }
  // RFC 7672 3.1.1: neither the names nor the dates of a certificate that is named itself count
  const failure = failureBy(3, [])
  if (failure === null || !tlsa.some(({ usage }) => usage === 2)) return failure
  // the library verifies signatures alone (RFC 7672 3.2.2, RFC 5280 6.1)
  const trusted = failureBy(
    2,
    issuers.filter((issuer) => issuer.ca && isCurrent(issuer)),
  )
  if (trusted !== null) return trusted
  if (!isCurrent(leaf)) return `the certificate of ${hostname} is valid from ${leaf.validFrom} to ${leaf.validTo}`
  const names = [hostname, ...(domain === undefined || domain === hostname ? [] : [domain])]
  const isNamed = names.some((name) => leaf.checkHost(name, { partialWildcards: false }) !== undefined)
  return isNamed ? null : `the certificate is not for ${names.join(' or ')}`
}

function isCurrent({ validFromDate, validToDate }: X509Certificate): boolean {
  const now = Date.now()
  return validFromDate.getTime() <= now && now <= validToDate.getTime()
}

function post(report: TlsReport): void {
  parentPort!.postMessage(report)
}

parentPort!.on('message', (order: TlsOrder | TlsAuthorities) => {
  if ('authorities' in order) {
    setDefaultCACertificates(order.authorities)
    contexts.clear()
    return
  }
  const { id } = order
  if (!('open' in order)) {
    connections.get(id)?.take(order)
    return
  }
  try {
    connections.set(id, new Connection(id, order.open))
  } catch (error) {
    post({ id, failed: { message: (error as Error).message, code: (error as NodeJS.ErrnoException).code } })
  }
})
