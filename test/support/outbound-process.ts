import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync, type SQLOutputValue } from 'node:sqlite'
import { onTestFinished } from 'vitest'
import type { Domain } from '../../src/domains/model.ts'
import type { Email } from '../../src/mail/model.ts'
import { bootstrapKey } from './appliance.ts'
import { DnsStub } from './dns-stub.ts'
import { MailSink } from './mail-sink.ts'
import { boxProcess, type BoxProcess, testBox } from './process.ts'
import { publish } from './verified-domain.ts'

type Answer = ReturnType<typeof JSON.parse>

/** Whom `send` writes to, each in a domain of its own. */
export const everyone = Array.from({ length: 4 }, (_, number) => `bob${number}@far${number}.test`)

interface Living {
  id: string
  email: string
}

/** A box with a verified domain and two identities, other mail servers in a DNS of ours, and the ways to hold it from outside. */
export class OutboundProcess {
  box!: BoxProcess
  ada!: Living
  bob!: Living
  readonly sink: MailSink
  readonly dns: DnsStub
  readonly #home = mkdtempSync(join(tmpdir(), 'pillarbox-window-'))

  private constructor(sink: MailSink, dns: DnsStub) {
    this.sink = sink
    this.dns = dns
  }

  static async open(): Promise<OutboundProcess> {
    const dns = await DnsStub.start()
    onTestFinished(() => dns.close())
    for (const number of everyone.keys()) dns.mx(`far${number}.test`, 'mx.far.test')
    dns.a('mx.far.test', '127.0.0.1')
    const process = new OutboundProcess(await MailSink.start(), dns)
    onTestFinished(() => rmSync(process.#home, { recursive: true, force: true }))
    await process.start()
    const { data } = await process.#call<{ data: Domain[] }>('GET', '/v1/domains')
    publish(dns, data[0]!)
    const { status } = await process.post(`/v1/domains/${data[0]!.id}/verify`, {})
    if (status !== 'verified') throw new Error(`The domain is ${status}.`)
    process.ada = await process.post('/v1/identities', { name: 'Ada' })
    process.bob = await process.post('/v1/identities', { name: 'Bob' })
    return process
  }

  async start(): Promise<void> {
    this.box = boxProcess({
      ...testBox,
      PILLARBOX_DATA_DIR: join(this.#home, 'data'),
      PILLARBOX_BOOTSTRAP_KEY: bootstrapKey,
      PILLARBOX_DNS__SERVERS: this.dns.servers.join(','),
      PILLARBOX_OUTBOUND__PORT: String(this.sink.port),
      PILLARBOX_OUTBOUND__ALLOW_NETWORKS: '127.0.0.0/8',
      PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8',
    })
    await this.box.said('started')
  }

  async kill(): Promise<void> {
    await this.box.end('SIGKILL')
  }

  /** Sends a message to each of them; answers their ids, each acknowledged. */
  async send(
    input: { attachments?: { filename: string; content: string }[]; send_at?: string } = {},
    recipients = everyone,
  ): Promise<string[]> {
    const ids: string[] = []
    for (const to of recipients) {
      const mail = { to, subject: `For ${to}`, body: 'Grüße\n.\n', ...input }
      ids.push((await this.post(`/v1/identities/${this.ada.id}/emails`, mail)).id)
    }
    return ids
  }

  /** Gives scheduled messages another time; answers for each the time that it has now: at once when that is past. */
  async reschedule(ids: string[], at: string): Promise<string[]> {
    const times: string[] = []
    for (const id of ids) {
      const email = await this.#call<Email>('PATCH', `/v1/identities/${this.ada.id}/emails/${id}`, { send_at: at })
      times.push(email.send_at!)
    }
    return times
  }

  email(id: string): Promise<Email> {
    return this.#call('GET', `/v1/identities/${this.ada.id}/emails/${id}`)
  }

  async inbox(query = ''): Promise<Email[]> {
    return (await this.#call<{ data: Email[] }>('GET', `/v1/identities/${this.bob.id}/emails?limit=50${query}`)).data
  }

  /** The different statuses that these messages have. */
  async statuses(ids: string[]): Promise<string[]> {
    const emails = await Promise.all(ids.map((id) => this.email(id)))
    return [...new Set(emails.map(({ status }) => status))]
  }

  /** From outside, keeps the box from one step: a trigger on the table that the step must write to. */
  hold(when: string): void {
    this.change(`CREATE TRIGGER held ${when} BEGIN SELECT RAISE(ABORT, 'held'); END`)
  }

  release(): void {
    this.change('DROP TRIGGER held')
  }

  change(statement: string): void {
    this.#over((database) => database.exec(statement))
  }

  rows(query: string): Record<string, SQLOutputValue>[] {
    return this.#over((database) => database.prepare(query).all())
  }

  post(path: string, body: object): Promise<Answer> {
    return this.#call('POST', path, body)
  }

  delete(path: string): Promise<Answer> {
    return this.#call('DELETE', path)
  }

  #over<Result>(work: (database: DatabaseSync) => Result): Result {
    const database = new DatabaseSync(join(this.#home, 'data', 'pillarbox.db'), { timeout: 60_000 })
    try {
      return work(database)
    } finally {
      database.close()
    }
  }

  /** The octets of a message, as we keep them. */
  async source(id: string): Promise<string> {
    return (await this.#ask('GET', `/v1/identities/${this.ada.id}/emails/${id}/raw`)).text()
  }

  async #call<Body = Answer>(method: string, path: string, body?: object): Promise<Body> {
    return (await (await this.#ask(method, path, body)).json()) as Body
  }

  async #ask(method: string, path: string, body?: object): Promise<Response> {
    const { api } = await this.box.said('started')
    const response = await fetch(`${api}${path}`, {
      method,
      headers: { Authorization: `Bearer ${bootstrapKey}`, 'Content-Type': 'application/json' },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
    return response
  }
}
