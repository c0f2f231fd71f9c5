import { setTimeout as sleep } from 'node:timers/promises'
import { day, iso } from '../../../src/core/clock.ts'
import { letter } from '../../contract/estate.ts'
import { deliver, message } from '../../support/appliance.ts'
import { blob, card } from '../../support/card.ts'
import { publish } from '../../support/verified-domain.ts'
import { pick, type Random } from '../../support/random.ts'
import type { Domain } from '../../../src/domains/model.ts'
import { codeAt } from '../box/code.ts'
import { farDomains } from '../box/peers.ts'
import type { Answered, RunningBox, World } from '../box/world.ts'
import { made, reply, UnknownCall, type With } from './caller.ts'

/** What was put into a box and is not in what it answers when asked for it, or only by other calls. */
export interface Filled {
  /** Paths of codes, and their secrets. */
  passwords: { path: string; secret: string }[]
  cards: { id: string; encrypted_data: string }[]
  logins: { id: string; password: string }[]
  person?: Person
  token?: string
  /** A call under an idempotency key, and its answer. */
  repeated?: { body: object; idempotency: string; answer: Answered }
  /** Kinds of data that the box does not know. */
  unknown: string[]
}

/** A person of another account, who has a second factor and a session. */
export interface Person {
  email: string
  password: string
  secret: string
  cookie: string
  key: string
}

export const audience = 'https://shop.example.com'

const words = ['invoice', 'Grüße', '東京', '🙂', "it's", '100 %', 'a\\b', 'null', '<b>', 'Ünïcode', '-- ', '{}']

/** Fills a box with data of every kind that it knows. */
export async function fill(box: RunningBox, world: World, random: Random): Promise<Filled> {
  const filling = new Filling(box, world, random)
  await filling.run()
  return filling.filled
}

class Filling {
  readonly filled: Filled = { passwords: [], cards: [], logins: [], unknown: [] }
  readonly #box: RunningBox
  readonly #world: World
  readonly #random: Random
  #ada = ''
  #email = ''
  #verified = ''
  #number = 0

  constructor(box: RunningBox, world: World, random: Random) {
    this.#box = box
    this.#world = world
    this.#random = random
  }

  async run(): Promise<void> {
    const kinds: [string, () => Promise<void>][] = [
      ['identities', () => this.#identities()],
      ['mail in', () => this.#mailIn()],
      ['mail out', () => this.#mailOut()],
      ['text messages', () => this.#texts()],
      ['one-time passwords', () => this.#passwords()],
      ['cards', () => this.#cards()],
      ['logins', () => this.#logins()],
      ['domains', () => this.#domains()],
      ['aliases', () => this.#aliases()],
      ['suppressions', () => this.#suppressions()],
      ['keys', () => this.#keys()],
      ['webhooks', () => this.#webhooks()],
      ['agents', () => this.#agents()],
      ['tokens', () => this.#tokens()],
      ['reports', () => this.#reports()],
      ['people', () => this.#people()],
      ['invitations', () => this.#invitations()],
      ['senders', () => this.#senders()],
      ['policies', () => this.#policies()],
      ['exports', () => this.#exports()],
      ['backups', () => this.#backups()],
      ['repeated calls', () => this.#repeated()],
    ]
    for (const [kind, make] of kinds) {
      try {
        await make()
      } catch (error) {
        if (!(error instanceof UnknownCall)) throw error
        this.filled.unknown.push(kind)
      }
    }
  }

  async #identities(): Promise<void> {
    const metadata = { team: this.#text(), number: this.#random(1000), nested: { list: [1, null, this.#text()] } }
    const ada = await this.#post('/v1/identities', { name: `Ada ${this.#text()}`.slice(0, 60), metadata })
    this.#ada = `/v1/identities/${ada['id']}`
    this.#email = String(ada['email'])
    const suspended = await this.#post('/v1/identities', { name: 'Suspended' })
    await this.#call('PATCH', `/v1/identities/${suspended['id']}`, { status: 'suspended' })
    const deleted = await this.#post('/v1/identities', { name: 'Deleted' })
    await this.#call('DELETE', `/v1/identities/${deleted['id']}`)
  }

  async #mailIn(): Promise<void> {
    await this.#deliver(letter('Ada'))
    for (let count = 3 + this.#random(5); count > 0; count -= 1) {
      const name = this.#name()
      const lines = Array.from({ length: this.#random(40) }, () => this.#text())
      await this.#deliver(
        message(
          {
            'Message-ID': `<${name}@sender.test>`,
            Subject: `${name} invoice`,
            'Content-Type': 'text/plain; charset=utf-8',
            ...(this.#random(2) === 0 ? { 'In-Reply-To': '<ada@sender.test>' } : {}),
          },
          `${lines.join('\n')}\n`,
        ),
      )
    }
    await this.#deliver(message({ 'Message-ID': '<large@sender.test>', Subject: 'Large' }, `${'x'.repeat(77)}\n`.repeat(4000)))
    // a second copy of one
    await this.#deliver(letter('Ada'))
    const { data } = await this.#get(`${this.#ada}/emails`)
    const [first, second] = data as { id: string }[]
    await this.#call('PATCH', `${this.#ada}/emails/${first!.id}`, { read: true })
    await this.#call('DELETE', `${this.#ada}/emails/${second!.id}`)
  }

  async #mailOut(): Promise<void> {
    const path = `${this.#ada}/emails`
    const to = (): string => `${this.#name()}@${pick(farDomains, this.#random)}`
    const attachment = Buffer.from(Array.from({ length: 2000 }, () => this.#random(256)))
    const content = { subject: this.#text(), body_text: `${this.#text()}\n.\n`, body_html: `<p>${this.#text()}</p>` }
    await this.#post(path, {
      to: [to(), to()],
      cc: to(),
      bcc: to(),
      ...content,
      attachments: [{ filename: 'Anhang ü.bin', content_type: 'application/pdf', content: attachment.toString('base64') }],
    })
    // one that stays on the box
    await this.#post(path, { to: this.#world.furnished.inbox.email, ...content })
    const { data } = await this.#get(`${path}?limit=1`)
    await this.#post(`${path}/${(data as { id: string }[])[0]!.id}/reply`, { body_text: this.#text() })
    const send_at = iso(Date.now() + 20 * day)
    await this.#post(path, { to: to(), ...content, send_at })
    const cancelled = await this.#post(path, { to: to(), ...content, send_at })
    await this.#post(`${path}/${cancelled['id']}/cancel`)
  }

  async #texts(): Promise<void> {
    const { phone_number: to } = await this.#post(`${this.#ada}/phone`, {})
    const media = [{ content_type: 'image/png', content: Buffer.from('a picture').toString('base64') }]
    const text = { from: '+15550100199', to, body: `Your code is 493817. ${this.#text()}` }
    await this.#post('/v1/sms/loopback/inject', { ...text, media })
    await this.#post('/v1/sms/loopback/inject', text)
    const deleted = await this.#post('/v1/sms/loopback/inject', text)
    await this.#call('DELETE', `${this.#ada}/sms/${deleted['id']}`)
    await this.#post(`${this.#ada}/sms`, { to: '+15550100198', body: this.#text() })
  }

  async #passwords(): Promise<void> {
    const path = `${this.#ada}/totp`
    for (const secret of ['JBSWY3DPEHPK3PXP', 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ', 'KRSXG5CTMVRXEZLUKRSXG5CT']) {
      const { id } = await this.#post(path, { secret, service_name: this.#text() })
      this.filled.passwords.push({ path: `${path}/${id}/code`, secret })
    }
    const deleted = await this.#post(path, { secret: 'JBSWY3DPEHPK3PXP', service_name: 'Deleted' })
    await this.#call('DELETE', `${path}/${deleted['id']}`)
  }

  async #cards(): Promise<void> {
    const store = async (): Promise<{ id: string; encrypted_data: string }> => {
      const encrypted_data = blob()
      const { id } = await this.#post(`${this.#ada}/cards`, card({ encrypted_data, budget_cents: 100_000 }))
      return { id: String(id), encrypted_data }
    }
    const [cancelled, active, another, frozen] = [await store(), await store(), await store(), await store()]
    for (const amount_cents of [1 + this.#random(500), 1_000_000])
      await reply(this.#box, 'POST', `/v1/cards/${active.id}/reveal`, { body: { amount_cents, purpose: this.#text() } })
    await this.#call('PATCH', `/v1/cards/${active.id}/limits`, { budget_cents: 50_000 + this.#random(1000) })
    await this.#post(`/v1/cards/${active.id}/transactions`, { type: 'report', amount_cents: 1199, description: this.#text() })
    await this.#post(`/v1/cards/${frozen.id}/freeze`)
    await this.#post(`/v1/cards/${cancelled.id}/cancel`)
    this.filled.cards.push(active, another)
  }

  async #logins(): Promise<void> {
    for (let count = 2; count > 0; count -= 1) {
      const password = `${this.#text()} ${this.#name()}`
      const login = { label: this.#name(), url: 'https://shop.example.com/', username: 'ada', password, notes: this.#text() }
      const { id } = await this.#post(`${this.#ada}/logins`, login)
      this.filled.logins.push({ id: String(id), password })
    }
  }

  async #domains(): Promise<void> {
    const domain = await this.#domain()
    publish(this.#world.peers.dns, domain)
    const { status } = await this.#post(`/v1/domains/${domain.id}/verify`)
    if (status !== 'verified') throw new Error(`The domain is ${status}.`)
    this.#verified = `/v1/domains/${domain.id}`
    // one that waits for its records
    await this.#domain()
  }

  async #domain(): Promise<Domain> {
    return (await this.#post('/v1/domains', { name: `${this.#name()}.example` })) as unknown as Domain
  }

  async #aliases(): Promise<void> {
    for (const local_part of ['sales', 'info'])
      await this.#post(`${this.#verified}/aliases`, { local_part, identity_id: this.#ada.split('/')[3] })
  }

  async #suppressions(): Promise<void> {
    for (let count = 2; count > 0; count -= 1) await this.#post('/v1/suppressions', { email: `${this.#name()}@far0.test` })
  }

  async #keys(): Promise<void> {
    const scopes = ['identities:read', 'emails:read']
    await this.#post('/v1/api-keys', { label: this.#text(), scopes, expires_at: iso(Date.now() + 90 * day) })
    await this.#post('/v1/api-keys', { label: 'bound', scopes, identity_id: this.#ada.split('/')[3] })
    const revoked = await this.#post('/v1/api-keys', { label: 'revoked', scopes })
    await this.#call('DELETE', `/v1/api-keys/${revoked['id']}`)
  }

  async #webhooks(): Promise<void> {
    const { url } = this.#world.peers.hooks
    const webhook = await this.#post('/v1/webhooks', { url, events: ['email.received'], headers: { 'X-Team': 'research' } })
    await this.#post(`/v1/webhooks/${webhook['id']}/test`)
    const still = await this.#post('/v1/webhooks', { url, events: ['card.revealed'] })
    await this.#call('PATCH', `/v1/webhooks/${still['id']}`, { active: false })
  }

  async #agents(): Promise<void> {
    const agent = await this.#post('/v1/agents', { identity_id: this.#ada.split('/')[3], description: this.#text() })
    const link = { chain_id: 1, registry: '0x8004A169FB4a3325136EB29fA0ceB6D2e539a432', token_id: String(this.#random(1e9)) }
    await this.#post(`/v1/agents/${agent['id']}/erc8004`, link)
  }

  async #tokens(): Promise<void> {
    const { token } = await this.#post(`${this.#ada}/token`, { audience, expires_in: 900 })
    this.filled.token = String(token)
  }

  async #reports(): Promise<void> {
    const about = 'did:web:agents.example.com:v1:agents:ada'
    for (const type of ['positive', 'negative'])
      await this.#post(`${this.#ada}/events`, { type, about, weight: 2, note: this.#text() })
  }

  async #people(): Promise<void> {
    const email = `${this.#name()}@example.com`
    const password = 'a long and quiet evening'
    await this.#post('/v1/accounts', { name: 'Grace', email, password })
    const { status, cookie } = await reply(this.#box, 'POST', '/v1/session', { cookie: '', body: { email, password } })
    if (status !== 200) throw new Error(`The person could not sign in: ${status}`)
    const as = { cookie }
    // the password was not asked for at first
    let begun = await reply(this.#box, 'POST', '/v1/account/totp', { ...as, body: { password } })
    if (begun.status === 400) begun = await reply(this.#box, 'POST', '/v1/account/totp', { ...as, body: {} })
    const secret = String(begun.body['secret'])
    await made(this.#box, 'POST', '/v1/account/totp/confirm', {
      ...as,
      body: { code: codeAt(secret, Math.floor(Date.now() / 1000)) },
    })
    const scopes = ['identities:read', 'identities:write']
    const { key } = await made(this.#box, 'POST', '/v1/api-keys', { ...as, body: { label: 'Grace', scopes } })
    await made(this.#box, 'POST', '/v1/identities', { key: String(key), body: { name: 'Grace' } })
    this.filled.person = { email, password, secret, cookie, key: String(key) }
  }

  async #invitations(): Promise<void> {
    const { person } = this.filled
    if (person === undefined) return
    const body = { email: `${this.#name()}@example.com`, role: 'reader', password: person.password }
    await made(this.#box, 'POST', '/v1/people/invitations', { cookie: person.cookie, body })
  }

  async #senders(): Promise<void> {
    const rules = { allow: [`${this.#name()}@example.com`], block: ['@spam.example'], require_dmarc: false, max_score: null }
    await this.#call('PATCH', `${this.#ada}/senders`, rules)
  }

  async #policies(): Promise<void> {
    const { writer } = this.#world.furnished
    const at = `/v1/identities/${writer.id}`
    await this.#call('PATCH', `${at}/policy`, { preset: 'all', rules: [] })
    const { key } = await this.#post('/v1/api-keys', { scopes: ['emails:write'] })
    for (const decide of ['', 'approve', 'reject']) {
      const body = { to: `${this.#name()}@far1.test`, subject: this.#text(), body_text: this.#text() }
      const held = await made(this.#box, 'POST', `${at}/emails`, { key: String(key), body })
      if (decide !== '') await this.#post(`/v1/holds/${held['hold'].id}/${decide}`)
    }
  }

  async #exports(): Promise<void> {
    await jobEnd(this.#box, await this.#post(`${this.#ada}/export`))
  }

  async #backups(): Promise<void> {
    await jobEnd(this.#box, await this.#post('/v1/backups'))
  }

  async #repeated(): Promise<void> {
    const body = { name: this.#name() }
    const idempotency = this.#name()
    const answer = await made(this.#box, 'POST', '/v1/identities', { body, idempotency })
    this.filled.repeated = { body, idempotency, answer }
  }

  async #deliver(raw: string): Promise<void> {
    const answer = await deliver(this.#box.smtp, { to: this.#email, raw })
    if (!answer.startsWith('250')) throw new Error(`Mail was not accepted: ${answer}`)
  }

  #get(path: string): Promise<Answered> {
    return made(this.#box, 'GET', path)
  }

  #post(path: string, body?: object): Promise<Answered> {
    return this.#call('POST', path, body)
  }

  #call(method: string, path: string, body?: object): Promise<Answered> {
    return made(this.#box, method, path, (body === undefined ? {} : { body }) satisfies With)
  }

  #name(): string {
    return `n${(this.#number += 1)}-${this.#random(1e9).toString(36)}`
  }

  #text(): string {
    return Array.from({ length: 1 + this.#random(5) }, () => pick(words, this.#random)).join(' ')
  }
}

/** Waits for the end of a job; answers it, which must have gone well. */
export async function jobEnd(box: RunningBox, { id }: Answered): Promise<Answered> {
  for (let tries = 0; tries < 600; tries += 1) {
    const job = await made(box, 'GET', `/v1/jobs/${id}`)
    if (job['status'] === 'done') return job
    if (job['status'] !== 'running' && job['status'] !== 'queued') throw new Error(`A job ended so: ${JSON.stringify(job)}`)
    await sleep(50)
  }
  throw new Error(`The job ${id} does not end.`)
}
