import { once } from 'node:events'
import { Socket, createServer as createTcpServer } from 'node:net'
import { createServer, Packet } from 'dns2'

type Trouble = 'servfail' | 'refused' | 'silence'
type Server = ReturnType<typeof createServer>
type Answer = InstanceType<typeof Packet>['answers'][number]
type RecordType = 'A' | 'AAAA' | 'TXT' | 'MX' | 'PTR' | 'CNAME'

/** An authoritative name server on loopback, UDP and TCP, that answers from a table and can also misbehave. */
export class DnsStub {
  /** Every question asked, as `TYPE name`, in order. */
  readonly queries: string[] = []
  /** What every name suffers from, unless it has a trouble of its own. */
  trouble: Trouble | null = null
  readonly #records = new Map<string, Partial<Answer>[]>()
  readonly #troubles = new Map<string, Trouble>()
  readonly #delays = new Map<string, number>()
  readonly #timers = new Set<NodeJS.Timeout>()
  #server: Server | null = null
  #port = 0
  readonly #host: string
  readonly #wanted: number | undefined

  private constructor(host: string, port: number | undefined) {
    this.#host = host
    this.#wanted = port
  }

  /** Without a port it takes one that is free. */
  static async start(host = '127.0.0.1', port?: number): Promise<DnsStub> {
    const stub = new DnsStub(host, port)
    await stub.#listen()
    return stub
  }

  /** For `Resolver.setServers`. */
  get servers(): string[] {
    return [`${this.#host}:${this.#port}`]
  }

  /** A text is one record, in strings of 255 characters; an array is the strings of one. */
  txt(name: string, ...records: (string | string[])[]): this {
    return this.#add(
      name,
      'TXT',
      records.map((record) => ({ data: typeof record === 'string' ? (record.match(/[^]{1,255}/g) ?? ['']) : record })),
    )
  }

  a(name: string, ...addresses: string[]): this {
    return this.#add(
      name,
      'A',
      addresses.map((address) => ({ address })),
    )
  }

  aaaa(name: string, ...addresses: string[]): this {
    return this.#add(
      name,
      'AAAA',
      addresses.map((address) => ({ address })),
    )
  }

  /** In the order of their priorities 10, 20, …, unless one is given: `5 mx.test`. */
  mx(name: string, ...exchanges: string[]): this {
    return this.#add(
      name,
      'MX',
      exchanges.map((text, index) => {
        const [, priority, exchange] = /^(?:(\d+) )?(.*)$/.exec(text)!
        return { exchange: exchange!, priority: priority === undefined ? 10 * (index + 1) : Number(priority) }
      }),
    )
  }

  /** The name is another name for `target`; as a server that is not asked to, it does not follow. */
  cname(name: string, target: string): this {
    return this.#add(name, 'CNAME', [{ domain: target }])
  }

  /** The name of an IPv4 address. */
  ptr(address: string, name: string): this {
    return this.#add(`${address.split('.').toReversed().join('.')}.in-addr.arpa`, 'PTR', [{ domain: name }])
  }

  /** Forgets what was said of one name. */
  drop(name: string, type: RecordType): this {
    this.#records.delete(`${type} ${name.toLowerCase()}`)
    return this
  }

  /** Every query for this name fails so; `null` mends it. */
  fails(name: string, trouble: Trouble | null): this {
    if (trouble) this.#troubles.set(name.toLowerCase(), trouble)
    else this.#troubles.delete(name.toLowerCase())
    return this
  }

  /** Answers for this name come after so many milliseconds. */
  slow(name: string, milliseconds: number): this {
    this.#delays.set(name.toLowerCase(), milliseconds)
    return this
  }

  /** Forgets records, troubles and queries. */
  clear() {
    this.trouble = null
    for (const table of [this.#records, this.#troubles, this.#delays]) table.clear()
    this.queries.length = 0
  }

  async close() {
    for (const timer of this.#timers) clearTimeout(timer)
    await this.#server?.close()
  }

  #add(name: string, type: RecordType, records: Partial<Answer>[]): this {
    this.#records.set(`${type} ${name.toLowerCase()}`, records)
    return this
  }

  async #listen() {
    // The port of the one protocol may be taken in the other: try a few.
    for (let attempt = 0; attempt < 20; attempt++) {
      const port = this.#wanted ?? (await freePort())
      const server = this.#create()
      const failure = new Promise<false>((resolve) => server.once('error', () => resolve(false)))
      const ready = server.listen({ udp: { port, address: this.#host }, tcp: { port, address: this.#host } })
      if (await Promise.race([ready, failure])) {
        this.#server = server
        this.#port = port
        return
      }
    }
    throw new Error(
      `${this.#wanted === undefined ? 'no port is' : `port ${this.#wanted} of ${this.#host} is not`} free in both UDP and TCP`,
    )
  }

  #create(): Server {
    return createServer({
      udp: true,
      tcp: true,
      handle: (request, send, client) => {
        const question = request.questions[0]
        if (!question) return
        const name = question.name.toLowerCase()
        this.queries.push(`${Packet.typeName(question.type)} ${name}`)
        const delay = this.#delays.get(name)
        const reply = () => void this.#answer(request, client instanceof Socket, send)
        if (delay === undefined) reply()
        else this.#timers.add(setTimeout(reply, delay))
      },
    })
  }

  async #answer(
    request: InstanceType<typeof Packet>,
    overTcp: boolean,
    send: (packet: InstanceType<typeof Packet>) => Promise<Buffer>,
  ) {
    const question = request.questions[0]!
    const { name, type } = question
    const typeName = Packet.typeName(type)
    const trouble = this.#troubles.get(name.toLowerCase()) ?? this.trouble
    if (trouble === 'silence') return
    const response = Packet.createResponseFromRequest(request)
    response.header.aa = 1
    const records = this.#records.get(`${typeName} ${name.toLowerCase()}`)
    if (trouble) response.header.rcode = trouble === 'servfail' ? 2 : 5
    else if (records)
      for (const record of records) response.answers.push(Packet.createResourceFromQuestion(question, { ttl: 60, ...record }))
    else if (!this.#exists(name)) response.header.rcode = 3
    if (!overTcp && response.toBuffer().length > 1232) {
      response.answers.length = 0
      response.header.tc = 1
    }
    await send(response)
  }

  #exists(name: string): boolean {
    const wanted = name.toLowerCase()
    return [...this.#records.keys()].some((key) => key.endsWith(` ${wanted}`) || key.endsWith(`.${wanted}`))
  }
}

async function freePort(): Promise<number> {
  const probe = createTcpServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const address = probe.address()
  probe.close()
  await once(probe, 'close')
  if (address === null || typeof address === 'string') throw new Error('not listening on TCP')
  return address.port
}
