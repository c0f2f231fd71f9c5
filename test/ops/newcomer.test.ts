import { expect, onTestFinished, test } from 'vitest'
import { living } from '../outbound/outgoing.ts'
import { type Appliance, appliance, deliver, message } from '../support/appliance.ts'

type Json = ReturnType<typeof JSON.parse>

/** An agent that knows the address of a box and a key, and else what the box tells it. */
class Newcomer {
  calls = 0
  bytes = 0
  /** What answers were given names by the page: `{identity}`. */
  readonly #names = new Map<string, string>()
  #guide = ''
  readonly #box: Appliance

  constructor(box: Appliance) {
    this.#box = box
  }

  async begin(): Promise<void> {
    this.#guide = await this.#read('GET', '/llms.txt')
  }

  /** Makes a call that the page shows for a job, the first, with these fields of the body or of the query instead of those that are shown. */
  async do(job: string, instead: Record<string, unknown> = {}, which = 0): Promise<Json> {
    const [section] = new RegExp(`^\\d+\\. ${job}[^]*?(?=^\\d+\\. |^## )`, 'm').exec(this.#guide) ?? []
    if (section === undefined) throw new Error(`The page has no job ${job}`)
    const calls = [...section.matchAll(/^(GET|POST) (\S+)(?: (\{.*\}))?\n\d{3} (.+)$/gm)]
    const [, method, shown, body, response] = calls[which]!
    const url = new URL(this.#filled(shown!), 'http://box')
    if (method === 'GET') for (const [name, value] of Object.entries(instead)) url.searchParams.set(name, String(value))
    const given = body === undefined ? undefined : { ...JSON.parse(this.#filled(body)), ...instead }
    const text = await this.#read(method!, url.pathname + url.search, given && JSON.stringify(given))
    const answer: Json = JSON.parse(text)
    this.#learn(JSON.parse(response!.replaceAll('[…]', '[]')), answer)
    return answer
  }

  /** Keeps a value that the page has a name for. */
  know(name: string, value: string): void {
    this.#names.set(name, value)
  }

  /** Opens a socket by the token call that the page names, and subscribes. */
  async follow(): Promise<{ next: () => Promise<Json>; close: () => void }> {
    const [, path, body, query] = /`POST (\S+) (\{\})` answers a token.+`url(\?token=)`/.exec(this.#guide)!
    const { url, token, frames } = JSON.parse(await this.#read('POST', path!, body))
    this.calls += 1
    const socket = new WebSocket(url + query! + token)
    const ended = new AbortController()
    const close = (): void => {
      ended.abort()
      socket.close()
    }
    onTestFinished(close)
    const arrived: Json[] = []
    const read = ({ data }: MessageEvent): void => {
      this.bytes += Buffer.byteLength(data as string)
      arrived.push(JSON.parse(data as string))
    }
    socket.addEventListener('message', read, { signal: ended.signal })
    socket.addEventListener('open', () => socket.send(JSON.stringify(frames.subscribe)))
    const next = async (): Promise<Json> => {
      await expect.poll(() => arrived.length).toBeGreaterThan(0)
      return arrived.shift()
    }
    const { type } = await next()
    if (type !== 'subscribed') throw new Error(`The box answered ${type}`)
    return { next, close }
  }

  async #read(method: string, path: string, body?: string): Promise<string> {
    this.calls += 1
    const headers = {
      Authorization: `Bearer ${this.#box.key}`,
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
    }
    const response = await fetch(this.#box.url + path, { method, headers, ...(body === undefined ? {} : { body }) })
    const text = await response.text()
    this.bytes += Buffer.byteLength(text)
    if (!response.ok) throw new Error(`${path}: ${text}`)
    return text
  }

  #filled(text: string): string {
    return text.replaceAll(/\{(\w+)\}/g, (whole, name: string) => this.#names.get(name) ?? whole)
  }

  /** Keeps the values that the shown response gives names to. */
  #learn(shown: Json, answer: Json): void {
    for (const [field, value] of Object.entries(shown as object)) {
      const name = typeof value === 'string' ? /^\{(\w+)\}$/.exec(value)?.[1] : undefined
      if (name !== undefined) this.#names.set(name, answer[field] as string)
      else if (typeof value === 'object' && value !== null && answer[field]) this.#learn(value, answer[field])
    }
  }
}

test('by /llms.txt and the answers alone an agent gets an address, reads a code and answers a mail, in few calls and bytes', async () => {
  const box = await appliance()
  const bob = await living(box, 'Bob')
  const agent = new Newcomer(box)
  await agent.begin()

  // its key reaches all identities, so that it creates one
  expect((await agent.do('Who am I')).identity).toBeNull()
  const { email: address } = await agent.do('Get an address')

  const code = { From: 'Shop <hello@shop.test>', To: address, Subject: 'Welcome' }
  const waiting = agent.do('Wait for the next message', { subject_contains: 'Welcome' })
  await deliver(box.smtp, { from: 'hello@shop.test', to: address, raw: message(code, 'Your sign-up code is 493817.\n') })
  const first = await waiting
  expect(first.codes).toEqual(['493817'])

  const question = { to: address, subject: 'Lunch?', body_text: 'At one?' }
  expect((await box.call('POST', `/v1/identities/${bob.id}/emails`, question)).status).toBe(201)
  const { item } = await agent.do('Wait for the next message', { subject_contains: 'Lunch', since: first.since })
  expect(item.text).toBe('At one?')
  const { id, status } = await agent.do('Answer it', { body_text: 'Yes, at one.' })
  expect(status).toBe('queued')
  await box.settled()
  const { data } = await agent.do('Answer it', {}, 1)
  expect(data.find((row: { id: string }) => row.id === id).status).toBe('delivered')

  expect(agent.calls).toBeLessThanOrEqual(14)
  expect(agent.bytes).toBeLessThanOrEqual(12_000)
  const { body: inbox } = await box.call('GET', `/v1/identities/${bob.id}/emails?include=body`)
  expect(inbox.data[0]).toMatchObject({ from: address, subject: 'Re: Lunch?', text: 'Yes, at one.' })
})

test('so it signs up, logs in by a one-time password, follows events, searches, deletes, and makes a narrow key, in few calls and bytes', async () => {
  const box = await appliance()
  const bob = await living(box, 'Bob')
  const agent = new Newcomer(box)
  await agent.begin()

  const { id: identity, email: address } = await agent.do('Get an address')
  const { next, close } = await agent.follow()
  const code = { From: bob.email, To: address, Subject: 'Welcome' }
  await deliver(box.smtp, { from: bob.email, to: address, raw: message(code, 'Your sign-up code is 493817.\n') })
  const { event } = await next()
  close()
  expect(event).toMatchObject({ type: 'email.received', identity_id: identity, data: { from: bob.email, codes: ['493817'] } })
  agent.know('email', event.data.id)

  await agent.do('Log in', { service_name: 'Shop' })
  expect((await agent.do('Log in', {}, 1)).code).toMatch(/^\d{6}$/)
  expect((await agent.do('Answer it', { body_text: 'I am in.' })).status).toBe('queued')
  await box.settled()
  expect((await agent.do('Answer it', { limit: 1 }, 1)).data[0].status).toBe('delivered')
  const found = await agent.do('List what is unread', { q: 'welcome' }, 1)
  expect(found.data.map((row: { id: string }) => row.id)).toEqual([event.data.id])
  expect((await agent.do('Mark and label', { delete: true, read: undefined, labels: undefined })).changed).toEqual([
    event.data.id,
  ])
  expect((await box.call('GET', `/v1/identities/${identity}/emails`)).body.data).toEqual([])
  const { key } = await agent.do('Make a narrow key')
  expect((await box.call('GET', '/v1/whoami', undefined, { key })).body).toMatchObject({ scopes: ['messages:read'] })

  expect(agent.calls).toBeLessThanOrEqual(14)
  expect(agent.bytes).toBeLessThanOrEqual(12_000)
  const { body: inbox } = await box.call('GET', `/v1/identities/${bob.id}/emails?include=body`)
  expect(inbox.data[0]).toMatchObject({ from: address, subject: 'Re: Welcome', text: 'I am in.' })
})

test('the same wait made again, for the next code, does not answer the one before', async () => {
  const box = await appliance()
  const agent = new Newcomer(box)
  await agent.begin()
  const { email: address } = await agent.do('Get an address')
  for (const code of ['493817', '777111']) {
    const raw = message({ To: address, Subject: 'Your code' }, `Your code is ${code}.\n`)
    await deliver(box.smtp, { from: 'hello@shop.test', to: address, raw })
    expect((await agent.do('Wait for the next message')).codes).toEqual([code])
  }
})
