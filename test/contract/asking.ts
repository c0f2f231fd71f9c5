import { strict as assert } from 'node:assert'
import { generateSync } from 'otplib'
import * as z from 'zod'
import { type IdPrefix, newId } from '../../src/core/ids.ts'
import { type RoutePath, routePaths } from '../../src/http/route.ts'
import { fetchAs } from '../support/host.ts'
import { browser } from '../support/people.ts'
import { Described, type Told } from './described.ts'
import { type Estate, freshToken } from './estate.ts'
import { type Habitable, type Inhabited, person } from './inhabited.ts'

export interface Question {
  key?: string | null
  /** Of a session, instead of a key; then the call comes from a page of ours unless `headers` says otherwise. */
  cookie?: string
  method?: string
  query?: Record<string, string>
  /** Sent as JSON; a string as it is. */
  body?: unknown
  headers?: Record<string, string>
}

/** What is asked of: a box in this process or another. */
type World = Omit<Inhabited<Habitable>, 'close'>

/** Asks calls of a box, and holds every answer to what all answers promise and to the published description. */
export class Asking {
  readonly spellings: RoutePath[]
  readonly #inhabited: World
  readonly #described: Described

  constructor(inhabited: World) {
    this.#inhabited = inhabited
    // what providers call has forms and signatures of its own: test/sms; what is done on the machine itself: test/commands
    this.spellings = routePaths(inhabited.routes).filter(({ route }) => !route.raw && !route.local)
    this.#described = new Described(inhabited.routes)
  }

  /** The path with the objects of an estate, some of them replaced. Throws for a parameter nobody has an object for. */
  path({ path }: Pick<RoutePath, 'path'>, estate: Estate, changes: Record<string, string> = {}): string {
    const before = path.split('/')
    return before
      .map((segment, index) => {
        if (!segment.startsWith(':')) return segment
        const named = `${before[index - 1]}/${segment}`
        // some calls need a thing in another state: `cards/:id/unfreeze`
        const places = [`${named}/${before[index + 1]}`, `${segment}/${before[index + 1]}`, segment, named]
        const object = changes[segment.slice(1)] ?? places.map((place) => estate.objects[place]).find((one) => one !== undefined)
        if (object === undefined) throw new Error(`${path}: no estate has an object for ${segment}; add one to inhabited.ts`)
        return object
      })
      .join('/')
  }

  async ask(spelling: RoutePath, path: string, question: Question = {}): Promise<Told> {
    const { own, box } = this.#inhabited
    const key = question.key === undefined ? (spelling.route.scope === 'public' ? null : own.key) : question.key
    const { body, query } = question
    const needed = needsSession(spelling) && question.key === undefined
    const cookie = question.cookie ?? (needed ? await this.#inhabited.plantSession(own.account) : undefined)
    const headers: Record<string, string> = {
      ...(cookie !== undefined ? { Cookie: cookie } : key === null ? {} : { Authorization: `Bearer ${key}` }),
      ...(cookie !== undefined || spelling.route.rate === 'sign-in' ? { Origin: box.url } : {}),
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...question.headers,
    }
    const method = question.method ?? spelling.method
    const url = `${box.url}${path}${query ? `?${new URLSearchParams(query).toString()}` : ''}`
    const response =
      'Host' in headers
        ? await fetchAs(url, { method, headers })
        : await fetch(url, {
            method,
            redirect: 'manual',
            headers,
            ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
          })
    const octets = Buffer.from(await response.arrayBuffer())
    const text = octets.toString()
    const isJson = response.headers.get('content-type')?.startsWith('application/json') === true && text !== ''
    const told = {
      status: response.status,
      headers: response.headers,
      text,
      size: octets.length,
      json: isJson ? JSON.parse(text) : undefined,
    }
    this.#described.check(spelling, method, told)
    if (spelling.path === '/v1/account/stop' && told.status === 200) await this.#resume()
    return told
  }

  /** What is asked next is asked of an account that is not stopped. */
  async #resume(): Promise<void> {
    const { own, box, plantSession } = this.#inhabited
    const { status } = await browser(box, await plantSession(own.account)).call('POST', '/v1/account/resume', {})
    assert.equal(status, 200)
  }

  /** The documented way to call a route that succeeds; a signed URL is asked for first. */
  async good(spelling: RoutePath, estate: Estate): Promise<{ path: string; question: Question }> {
    const { example, query } = spelling.route
    const path = this.path(spelling, estate)
    // first, as it may end sessions
    const input = example?.body && (await this.#withOwn(example.body, spelling, estate))
    const question: Question = {
      ...(needsSession(spelling) ? { cookie: await this.#inhabited.plantSession(this.#inhabited.own.account) } : {}),
      ...(example?.query ? { query: example.query } : {}),
      ...(input ? { body: input } : {}),
      ...(example?.headers ? { headers: example.headers } : {}),
    }
    if (query === undefined || !('signature' in shapeOf(query))) return { path, question }
    if (path.startsWith('/v1/exports/')) {
      const { body } = await this.#inhabited.box.call('GET', `/v1/jobs/${estate.objects[':job_id']}`, undefined, {
        key: estate.key,
      })
      return { path, question: { ...question, query: Object.fromEntries(new URL(body.result.url as string).searchParams) } }
    }
    const below = path.startsWith('/v1/media/')
      ? `sms/${estate.objects[':sms_id']}/media/0`
      : `emails/${estate.objects[':email_id']}/attachments/0`
    const signer = `/v1/identities/${estate.objects['identities/:id']}/${below}`
    const { body } = await this.#inhabited.box.call('GET', signer, undefined, { key: estate.key })
    return { path, question: { ...question, query: Object.fromEntries(new URL(body.url as string).searchParams) } }
  }

  /**
   * A message is put into a number that the estate has, an alias is new and of an identity of it, an agent is of an identity without one, a link is to a token that is free, an
   * address is suppressed that was not, and a password and a code are those of the account.
   */
  async #withOwn(body: unknown, { method, path }: RoutePath, estate: Estate): Promise<unknown> {
    if (path === '/v1/sms/loopback/inject') return { ...(body as object), to: estate.objects['number'] }
    if (path === '/v1/agents') return { ...(body as object), identity_id: estate.objects['agentless'] }
    if (path === '/v1/domains/:id/aliases') {
      return { identity_id: estate.objects['identities/:id'], local_part: newId('alias').slice(-12) }
    }
    if (path === '/v1/agents/:id/erc8004') return { ...(body as object), token_id: freshToken() }
    if (method === 'POST' && path === '/v1/suppressions') return { ...(body as object), email: `${newId('sup')}@elsewhere.test` }
    if (path === '/v1/accounts') {
      const name = newId('acct')
      return { ...(body as object), name, email: `${name}@example.com` }
    }
    if (path === '/v1/setup')
      return { ...(body as object), email: `${newId('acct')}@example.com`, token: await this.#inhabited.plantLink() }
    if (path === '/v1/people/invitations')
      return { ...(body as object), email: `${newId('inv')}@example.com`, password: person.password }
    if (path === '/v1/people/invitations/accept') return { ...(body as object), token: await this.#inhabited.plantInvitation() }
    if (path.startsWith('/v1/hold-links/'))
      return { ...(body as object), token: await this.#inhabited.plantHoldLink(estate.objects['holds/:id']!) }
    if (path === '/v1/account/password') return { current_password: person.password, password: person.password }
    if (!path.startsWith('/v1/account/totp') && path !== '/v1/session') return body
    const { box, own, plantSession } = this.#inhabited
    const input = { password: person.password }
    const page = browser(box, await plantSession(own.account))
    await page.call('DELETE', '/v1/account/totp', input)
    if (path === '/v1/session') return person
    if (path === '/v1/account/totp' && method === 'POST') return input
    const { body: begun } = await page.call('POST', '/v1/account/totp', input)
    return method === 'DELETE' ? input : { code: begun.error ? '000000' : generateSync({ secret: begun['secret'] as string }) }
  }
}

/** Whether it leaves everything as it is, so that one estate does for all such calls. */
export function isReadOnly({ method, route }: Pick<RoutePath, 'method' | 'route'>): boolean {
  return method === 'GET' && !route.effect
}

/** What is asked of the session itself, which no key has. */
export function needsSession({ method, path }: RoutePath): boolean {
  return (
    (path === '/v1/session' && method !== 'POST') ||
    path.startsWith('/v1/account/totp') ||
    path === '/v1/account/resume' ||
    changesPeople({ method, path })
  )
}

function changesPeople({ method, path }: Pick<RoutePath, 'method' | 'path'>): boolean {
  return method !== 'GET' && path.startsWith('/v1/people') && !path.endsWith('/accept')
}

/** An id of the same kind that nobody has. */
export function absent(id: string): string {
  const prefix = id.slice(0, id.indexOf('_'))
  return id.includes('_') ? newId(prefix as IdPrefix) : '7'
}

/** The fields of an object schema; none for any other. */
export function shapeOf(schema: z.ZodType | undefined): Record<string, z.ZodType> {
  return schema instanceof z.ZodObject ? schema.shape : {}
}
