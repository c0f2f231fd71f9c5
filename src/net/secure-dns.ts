import { randomInt } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { connect, isIPv6 } from 'node:net'
import type { DnsTally } from './dns-tally.ts'

/** Record type numbers. */
export const recordTypes = { A: 1, MX: 15, AAAA: 28, TLSA: 52 } as const

/** An answer, with whether the name server validated it (the AD bit, RFC 4035 3.2.3). `found` is the data of records of that type. */
export interface SecureAnswer {
  secure: boolean
  found: Buffer[]
}

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
        this.#tally?.count(answer.found.length > 0 ? 'found' : 'absent')
        return answer
      } catch (error) {
        failure = error
      }
    }
    this.#tally?.count('trouble')
    throw failure
  }

  async #askServer(server: Endpoint, name: string, type: number): Promise<SecureAnswer> {
    const id = randomInt(0x1_0000)
    const query = queryOf(id, name, type)
    const signal = AbortSignal.timeout(this.#settings.timeout)
    const short = await overUdp(server, query, signal)
    // TC: the answer does not fit
    const answer = short.readUInt16BE(2) & 0x0200 ? await overTcp(server, query, signal) : short
    return read(answer, type)
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

function queryOf(id: number, name: string, type: number): Buffer {
  const labels = name
    .replace(/\.$/, '')
    .split('.')
    .map((label) => Buffer.from(label, 'latin1'))
  if (labels.some(({ length }) => length === 0 || length > 63)) throw new Error(`${name.slice(0, 100)} is not a name`)
  const header = Buffer.alloc(12)
  header.writeUInt16BE(id, 0)
  // RD: recursion desired; AD: report whether the answer is validated (RFC 6840 5.7)
  header.writeUInt16BE(0x0120, 2)
  header.writeUInt16BE(1, 4)
  header.writeUInt16BE(1, 10)
  const question = Buffer.from([0, 0, type, 0, 1])
  // EDNS (RFC 6891): answers of up to 1232 bytes
  const edns = Buffer.from([0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0])
  return Buffer.concat([header, ...labels.flatMap((label) => [Buffer.from([label.length]), label]), question, edns])
}

/** True if an answer has the id and the question of the query. */
function isAnswerTo(query: Buffer, answer: Buffer): boolean {
  const question = query.subarray(12, -11)
  return (
    answer.length >= 12 + question.length &&
    answer.readUInt16BE(0) === query.readUInt16BE(0) &&
    (answer.readUInt16BE(2) & 0x8000) !== 0 &&
    answer.toString('latin1', 12, 12 + question.length).toLowerCase() === question.toString('latin1').toLowerCase()
  )
}

function overUdp({ host, port }: Endpoint, query: Buffer, signal: AbortSignal): Promise<Buffer> {
  const socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4')
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const onTimeout = (): void => reject(new Error('the name server did not answer in time'))
  signal.addEventListener('abort', onTimeout)
  socket.on('error', reject)
  socket.on('message', (answer) => {
    if (isAnswerTo(query, answer)) resolve(answer)
  })
  socket.connect(port, host, () => socket.send(query))
  return promise.finally(() => {
    signal.removeEventListener('abort', onTimeout)
    socket.close()
  })
}

function overTcp({ host, port }: Endpoint, query: Buffer, signal: AbortSignal): Promise<Buffer> {
  const socket = connect({ host, port, signal })
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  let received = Buffer.alloc(0)
  const length = Buffer.alloc(2)
  length.writeUInt16BE(query.length)
  socket.on('error', reject)
  socket.on('close', () => reject(new Error('the name server closed the connection')))
  socket.on('connect', () => socket.write(Buffer.concat([length, query])))
  socket.on('data', (chunk) => {
    received = Buffer.concat([received, chunk])
    if (received.length < 2 || received.length < 2 + received.readUInt16BE(0)) return
    const answer = received.subarray(2, 2 + received.readUInt16BE(0))
    if (isAnswerTo(query, answer)) resolve(answer)
    else reject(new Error('the name server sent a mismatched answer'))
  })
  return promise.finally(() => socket.destroy())
}

function read(answer: Buffer, type: number): SecureAnswer {
  const flags = answer.readUInt16BE(2)
  const code = flags & 0x000f
  // 3: NXDOMAIN
  if (code !== 0 && code !== 3) throw new Error(`the name server reported an error (${code})`)
  const found: Buffer[] = []
  let at = skipName(answer, 12) + 4
  for (let count = answer.readUInt16BE(6); count > 0; count--) {
    at = skipName(answer, at)
    const length = answer.readUInt16BE(at + 8)
    if (answer.readUInt16BE(at) === type) found.push(answer.subarray(at + 10, at + 10 + length))
    at += 10 + length
  }
  return { secure: (flags & 0x0020) !== 0, found }
}

function skipName(answer: Buffer, from: number): number {
  for (let at = from; ;) {
    const length = answer.readUInt8(at)
    if (length === 0) return at + 1
    // a pointer ends a name (RFC 1035 4.1.4)
    if (length >= 0xc0) return at + 2
    at += 1 + length
  }
}
