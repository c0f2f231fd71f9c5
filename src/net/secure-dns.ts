import { createSocket } from 'node:dgram'
import { createRequire } from 'node:module'
import { connect, isIPv6 } from 'node:net'
import type { Packet } from 'dns2'
import type { DnsTally } from './dns-tally.ts'

const require = createRequire(import.meta.url)

// loaded with the first query
const packets = (): typeof Packet => (require('dns2') as typeof import('dns2')).Packet

/** Record type numbers. */
const recordTypes = { A: 1, MX: 15, AAAA: 28, TLSA: 52 } as const

/** An answer, with whether the name server validated it (the AD bit, RFC 4035 3.2.3). `found` is the data of TLSA records. */
interface SecureAnswer {
  secure: boolean
  found: Buffer[]
}

/** Bytes of an answer: reading names by compression pointers (RFC 1035 4.1.4) takes time that grows with the square of its length. */
const longest = 8192

interface Settings {
  servers: readonly string[]
  timeout: number
}

/**
 * Queries a validating name server for answers with their DNSSEC status, which the resolver of Node does not provide. Only as trustworthy as the
 * network path to that server. Rejects when no server answers, or when it answers with an error.
 */
export class SecureDns {
  readonly #settings: Settings
  readonly #tally: DnsTally | undefined

  constructor(settings: Settings, tally?: DnsTally) {
    this.#settings = settings
    this.#tally = tally
  }

  async ask(name: string, type: keyof typeof recordTypes): Promise<SecureAnswer> {
    const { servers } = this.#settings
    let failure: unknown = new Error('no name server is configured: set dns.servers')
    for (const server of [...servers, ...servers].slice(0, 3)) {
      try {
        const answer = await this.#askServer(endpointOf(server), name, recordTypes[type])
        const records = answer.answers.filter((record) => record.type === recordTypes[type])
        this.#tally?.count(records.length > 0 ? 'found' : 'absent')
        // missing in the types of the library
        const { ad } = answer.header as { ad?: number }
        return { secure: ad === 1, found: records.map(({ data }) => data).filter((data) => Buffer.isBuffer(data)) }
      } catch (error) {
        failure = error
      }
    }
    this.#tally?.count('trouble')
    throw failure
  }

  async #askServer(server: Endpoint, name: string, type: number): Promise<Packet> {
    const query = queryOf(name, type)
    const signal = AbortSignal.timeout(this.#settings.timeout)
    const short = await overUdp(server, query, signal)
    // TC: the answer does not fit
    const answer = short.header.tc ? await overTcp(server, query, signal) : short
    const { NOERROR, NXDOMAIN } = packets().RCODE
    const { rcode } = answer.header
    if (rcode !== NOERROR && rcode !== NXDOMAIN) throw new Error(`the name server reported an error (${rcode})`)
    if (answer.errors[0]) throw answer.errors[0]
    return answer
  }
}

interface Endpoint {
  host: string
  port: number
}

function endpointOf(server: string): Endpoint {
  if (isIPv6(server)) return { host: server, port: 53 }
  const parts = /^(?:\[(.+)\]|([^:]+))(?::(\d+))?$/.exec(server)
  return { host: parts?.[1] ?? parts?.[2] ?? server, port: Number(parts?.[3] ?? 53) }
}

function queryOf(name: string, type: number): Packet {
  if (name.replace(/\.$/, '').split('.').includes('')) throw new Error(`${name.slice(0, 100)} is not a name`)
  const query = new (packets())()
  // RD: recursion desired; AD: report whether the answer is validated (RFC 6840 5.7)
  Object.assign(query.header, { id: packets().uuid(), rd: 1, ad: 1 })
  query.questions.push(new (packets().Question)(name.replace(/\.$/, ''), type, packets().CLASS.IN))
  query.additionals.push(packets().Resource.EDNS([], { udpPayloadSize: 1232 }))
  return query
}

/** The answer to a query, which has its id and its question; undefined for anything else. */
function answerTo(query: Packet, bytes: Buffer): Packet | undefined {
  if (bytes.length > longest || bytes.length < 2 || bytes.readUInt16BE(0) !== query.header.id) return undefined
  const answer = packets().parse(bytes)
  const [asked, answered] = [query.questions[0]!, answer.questions[0]]
  const isSame = answered?.name.toLowerCase() === asked.name.toLowerCase() && answered.type === asked.type
  return isSame && answered.class === asked.class && answer.header.qr === 1 ? answer : undefined
}

function overUdp({ host, port }: Endpoint, query: Packet, signal: AbortSignal): Promise<Packet> {
  const socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4')
  const { promise, resolve, reject } = Promise.withResolvers<Packet>()
  const onTimeout = (): void => reject(new Error('the name server did not answer in time'))
  signal.addEventListener('abort', onTimeout)
  socket.on('error', reject)
  socket.on('message', (bytes) => {
    try {
      const answer = answerTo(query, bytes)
      if (answer) resolve(answer)
    } catch {
      // no DNS message: the answer may still come
    }
  })
  socket.connect(port, host, () => socket.send(query.toBuffer()))
  return promise.finally(() => {
    signal.removeEventListener('abort', onTimeout)
    socket.close()
  })
}

async function overTcp({ host, port }: Endpoint, query: Packet, signal: AbortSignal): Promise<Packet> {
  const socket = connect({ host, port, signal })
  // a failure of the connection is thrown by readStream while it reads, and does not matter afterwards
  socket.on('error', () => undefined)
  const bytes = query.toBuffer()
  const length = Buffer.alloc(2)
  length.writeUInt16BE(bytes.length)
  socket.write(Buffer.concat([length, bytes]))
  try {
    const answer = answerTo(query, await packets().readStream(socket))
    if (!answer) throw new Error('the name server sent a mismatched answer')
    return answer
  } finally {
    socket.destroy()
  }
}
