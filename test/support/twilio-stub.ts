import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

/** The official library, as the tests sign with it. */
export const library = createRequire(import.meta.url)('twilio') as typeof import('twilio')

export const account = `AC${'0123456789abcdef'.repeat(2)}`
export const token = 'f00dfeedf00dfeedf00dfeedf00dfeed'

/** What a box needs to be told to use the stand-in. */
export function twilioSettings(stub: TwilioStub): Record<string, string> {
  return {
    PILLARBOX_SMS__PROVIDER: 'twilio',
    PILLARBOX_SMS__TWILIO__ACCOUNT_SID: account,
    PILLARBOX_SMS__TWILIO__AUTH_TOKEN: token,
    PILLARBOX_SMS__TWILIO__BASE_URL: stub.url,
    PILLARBOX_SMS__ALLOW_NETWORKS: '127.0.0.0/8',
  }
}

interface Asked {
  method: string
  path: string
  form: Record<string, string>
}

interface Bought {
  sid: string
  phone_number: string
  friendly_name: string
  sms_url: string
}

type Behaviour = (asked: Asked, response: ServerResponse) => boolean

/** Answers as Twilio does when it refuses. */
export function refuses(status: number, code: number, message: string, headers: Record<string, string> = {}): Behaviour {
  return (_, response) => {
    json(response, status, { code, message, more_info: `https://www.twilio.com/docs/errors/${code}`, status }, headers)
    return true
  }
}

/** Twilio's HTTP API on loopback: forms in, JSON out, basic authentication; what it did and holds can be looked at. */
export class TwilioStub {
  readonly asked: Asked[] = []
  readonly messages: Record<string, string>[] = []
  readonly numbers = new Map<string, Bought>()
  /** Messages that came to numbers of the account, as its list has them. */
  readonly arrived: Record<string, unknown>[] = []
  /** Closes a connection that is used again, unheard: as a server does that has just grown tired of it. */
  tired = false
  /** Pictures by their path on the store that the API redirects to. */
  readonly media = new Map<string, Buffer>()
  /** Pictures that were asked for and are not answered yet, while this is set. */
  held: (() => void)[] | undefined
  /** For the next requests, one each, that match; true means answered. */
  readonly #next: { match: (asked: Asked) => boolean; behaviour: Behaviour }[] = []
  readonly #server = createServer((request, response) => void this.#serve(request, response))
  readonly #used = new WeakSet<object>()
  #count = 0

  /** Stopped when the test ends. */
  static async start(): Promise<TwilioStub> {
    const stub = await TwilioStub.open()
    onTestFinished(() => stub.stop())
    return stub
  }

  static async open(): Promise<TwilioStub> {
    const stub = new TwilioStub()
    stub.#server.listen(0, '127.0.0.1')
    await once(stub.#server, 'listening')
    return stub
  }

  stop(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** The next request whose method and path match is treated so. */
  next(what: string, behaviour: Behaviour): void {
    this.#next.push({ match: ({ method, path }) => `${method} ${path}`.includes(what), behaviour })
  }

  /** Does what was asked, and breaks the connection instead of answering. */
  losesAnswer(what: string): void {
    this.next(what, (asked, response) => {
      this.#act(asked, undefined)
      response.destroy()
      return true
    })
  }

  /** Sells a number, says so to the test, and answers once it may, or breaks the connection if it may not. */
  holds(what: string, until: Promise<void>, did: () => void): void {
    this.next(what, (asked, response) => {
      this.#act(asked, undefined)
      // it may be released before the answer
      const sold = [...this.numbers.values()].at(-1)
      did()
      until.then(
        () => json(response, 201, sold!),
        () => response.destroy(),
      )
      return true
    })
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.tired && this.#used.has(request.socket)) return void request.socket.destroy()
    this.#used.add(request.socket)
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const path = request.url ?? ''
    const form = Object.fromEntries(new URLSearchParams(Buffer.concat(chunks).toString('utf8')))
    const asked = { method: request.method ?? '', path, form }
    this.asked.push(asked)
    if (path.startsWith('/store/')) return this.#store(path, request, response)
    const expected = `Basic ${Buffer.from(`${account}:${token}`).toString('base64')}`
    if (request.headers.authorization !== expected)
      return json(response, 401, { code: 20003, message: 'Authenticate', status: 401 })
    const index = this.#next.findIndex(({ match }) => match(asked))
    if (index >= 0 && this.#next.splice(index, 1)[0]!.behaviour(asked, response)) return
    this.#act(asked, response)
  }

  #act({ method, path, form }: Asked, response: ServerResponse | undefined): void {
    const answer = (status: number, body: object): void => response && json(response, status, body)
    const at = path.split('?')[0]!.replace(`/2010-04-01/Accounts/${account}`, '')
    if (method === 'POST' && at === '/Messages.json') {
      const sid = `SM${randomBytes(16).toString('hex')}`
      this.messages.push({ ...form, sid })
      return answer(201, { sid, status: 'queued', num_segments: '1', account_sid: account, to: form['To'], from: form['From'] })
    }
    if (method === 'GET' && at === '/Messages.json') {
      return answer(200, { messages: this.arrived, next_page_uri: null, page: 0, page_size: 1000 })
    }
    if (method === 'GET' && at.endsWith('/Media.json')) {
      const uri = `/2010-04-01/Accounts/${account}${at.replace('.json', '')}`
      const media_list = [...this.media.keys()].map((sid) => ({ sid, content_type: 'image/png', uri: `${uri}/${sid}.json` }))
      return answer(200, { media_list, next_page_uri: null, page: 0, page_size: 50 })
    }
    const renamed = /^\/IncomingPhoneNumbers\/(PN\w+)\.json$/.exec(at)?.[1]
    if (method === 'POST' && renamed !== undefined) {
      const number = this.numbers.get(renamed)
      if (!number) return answer(404, { code: 20404, message: 'The requested resource was not found', status: 404 })
      number.sms_url = form['SmsUrl'] ?? number.sms_url
      return answer(200, number)
    }
    if (method === 'GET' && at === '.json') return answer(200, { sid: account, status: 'active', type: 'Full' })
    const [, country, kind] = /^\/AvailablePhoneNumbers\/([A-Z]{2})\/(Local|Mobile)\.json$/.exec(at) ?? []
    if (country !== undefined) {
      if (country === 'AQ') return answer(404, { code: 20404, message: 'The requested resource was not found', status: 404 })
      const available = kind === 'Local' && country === 'US' ? [`+1415555${String(1000 + this.#count++)}`] : []
      return answer(200, { available_phone_numbers: available.map((phone_number) => ({ phone_number, iso_country: country })) })
    }
    if (method === 'POST' && at === '/IncomingPhoneNumbers.json') {
      const sid = `PN${randomBytes(16).toString('hex')}`
      const { PhoneNumber = '', FriendlyName = '', SmsUrl = '' } = form
      const bought = { sid, phone_number: PhoneNumber, friendly_name: FriendlyName, sms_url: SmsUrl }
      this.numbers.set(sid, bought)
      return answer(201, bought)
    }
    if (method === 'GET' && at === '/IncomingPhoneNumbers.json') {
      return answer(200, { incoming_phone_numbers: [...this.numbers.values()], next_page_uri: null, page: 0, page_size: 1000 })
    }
    const [, sid] = /^\/IncomingPhoneNumbers\/(PN\w+)\.json$/.exec(at) ?? []
    if (method === 'DELETE' && sid !== undefined) {
      if (this.numbers.delete(sid)) return void response?.writeHead(204).end()
      return answer(404, { code: 20404, message: 'The requested resource was not found', status: 404 })
    }
    const [, picture] = /\/Media\/(ME\w+)$/.exec(at) ?? []
    if (picture !== undefined) return void response?.writeHead(307, { Location: `${this.url}/store/${picture}` }).end()
    return answer(404, { code: 20404, message: `no ${method} ${at}`, status: 404 })
  }

  #store(path: string, request: IncomingMessage, response: ServerResponse): void {
    const bytes = this.media.get(path.replace('/store/', ''))
    // the credentials are none of the store's business
    if (request.headers.authorization !== undefined) return void response.writeHead(400).end()
    if (!bytes) return void response.writeHead(404).end()
    const give = (): void => void response.writeHead(200, { 'Content-Type': 'image/png' }).end(bytes)
    if (this.held) this.held.push(give)
    else give()
  }
}

/** Calls the box as Twilio does, signed by the official library unless a signature is given. */
export async function callback(
  origin: string,
  path: string,
  form: Record<string, string>,
  { signature, signedUrl = `${origin}${path}` }: { signature?: string | null; signedUrl?: string } = {},
): Promise<{ status: number; type: string; text: string }> {
  const made = signature === undefined ? library.getExpectedTwilioSignature(token, signedUrl, form) : signature
  const response = await fetch(`${origin}${path}`, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/x-www-form-urlencoded',
      ...(made === null ? {} : { 'X-Twilio-Signature': made }),
    },
    body: new URLSearchParams(form).toString(),
  })
  return { status: response.status, type: response.headers.get('content-type') ?? '', text: await response.text() }
}

/** A message as Twilio announces it; its SID follows from the text. */
export function announced(to: string, body: string, more: Record<string, string> = {}): Record<string, string> {
  const sid = `SM${createHash('md5').update(`${to} ${body}`).digest('hex')}`
  return {
    MessageSid: sid,
    SmsSid: sid,
    SmsMessageSid: sid,
    AccountSid: account,
    From: '+14155550199',
    To: to,
    Body: body,
    NumMedia: '0',
    NumSegments: '1',
    SmsStatus: 'received',
    ApiVersion: '2010-04-01',
    FromCountry: 'US',
    ToCountry: 'US',
    ...more,
  }
}

/** The same message as the list of the account has it. */
export function listed(form: Record<string, string>, at: number, more: Record<string, unknown> = {}): Record<string, unknown> {
  const { MessageSid: sid, From: from, To: to, Body: body } = form
  const sent = new Date(at).toUTCString().replace('GMT', '+0000')
  return {
    sid,
    from,
    to,
    body,
    account_sid: account,
    direction: 'inbound',
    status: 'received',
    num_media: '0',
    date_sent: sent,
    ...more,
  }
}

function json(response: ServerResponse, status: number, body: object, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(JSON.stringify(body))
}
