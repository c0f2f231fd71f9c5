import { setTimeout as sleep } from 'node:timers/promises'
import type { Authorization, Client, Order } from 'acme-client'
import type { Pair } from './pair.ts'
import { AuthorityError, type CaAnswer, speak } from './transport.ts'
import { day } from '../core/clock.ts'

/** The CA and our account. */
export interface AuthoritySettings {
  /** The URL of its directory. */
  directory: string
  email: string | undefined
  /** External account binding (RFC 8555 7.3.4). */
  binding: { kid: string; hmacKey: string } | undefined
  /** PEM of the roots that its server is verified against; undefined: the default ones. */
  ca: string | undefined
  /** Our User-Agent. */
  agent: string
}

/** Publishes a challenge response at `/.well-known/acme-challenge/<token>`; returns a function that removes it. */
export type Post = (token: string, text: string) => Promise<() => Promise<void>>

/** The interface that the library expects of its HTTP client; not among its published types. */
interface Carried {
  http: { request(url: string, method: string, input?: { data?: unknown }): Promise<CaAnswer> }
}

/** Delays between polls of the CA's decision, in milliseconds: two minutes together. */
const pauses = [250, 500, 1000, 2000, 3000, ...Array.from({ length: 22 }, () => 5000)]

/** Generates a private key for an account or a certificate: EC P-256, PEM. */
export async function newKey(): Promise<string> {
  const { crypto } = await import('acme-client')
  return (await crypto.createPrivateEcdsaKey()).toString()
}

/** An ACME CA (RFC 8555) with http-01 challenges (8.3): the only user of acme-client. */
export class Authority {
  readonly #settings: AuthoritySettings
  readonly #accountKey: string
  readonly #post: Post

  constructor(settings: AuthoritySettings, accountKey: string, post: Post) {
    this.#settings = settings
    this.#accountKey = accountKey
    this.#post = post
  }

  /**
   * Obtains a certificate for these names with a new key. Throws AuthorityError with the CA's message, and as soon as the signal aborts.
   */
  async obtain(names: readonly string[], signal: AbortSignal): Promise<Pair> {
    const client = await this.#client(signal)
    const { email } = this.#settings
    // finds the account of this key if there is one (7.3.1), as a CA may have deleted it
    await client.createAccount({ termsOfServiceAgreed: true, ...(email === undefined ? {} : { contact: [`mailto:${email}`] }) })
    const order = await client.createOrder({ identifiers: names.map((value) => ({ type: 'dns', value })) })
    const wanted = (order as Partial<Order>).authorizations?.length ?? 0
    // the library fetches all of them at once
    if (wanted > names.length)
      throw new AuthorityError(`The CA requires ${wanted} authorizations for ${names.length} ${names.length === 1 ? 'name' : 'names'}`)
    await this.#prove(client, order, signal)
    return this.#finish(client, order, names, signal)
  }

  async #client(signal: AbortSignal): Promise<Client> {
    // loaded on first use: it is large, and most boxes never need it
    const { Client: AcmeClient } = await import('acme-client')
    const { directory, binding, ca, agent } = this.#settings
    const client = new AcmeClient({
      directoryUrl: directory,
      accountKey: this.#accountKey,
      ...(binding ? { externalAccountBinding: binding } : {}),
    })
    // replaces the library's, which has no timeout, waits as long as a CA requests, and shares its settings with the whole process
    const carried = client as unknown as Carried
    carried.http.request = async (url, method, input) => {
      const answer = await speak(url, method, input?.data, { ca, agent, signal })
      const refusal = refusalIn(answer)
      if (refusal) throw refusal
      return answer
    }
    return client
  }

  async #prove(client: Client, order: Order, signal: AbortSignal): Promise<void> {
    const takeAway: (() => Promise<void>)[] = []
    try {
      for (const authorization of await client.getAuthorizations(order)) {
        if (authorization.status === 'valid') continue
        const challenge = authorization.challenges.find(({ type }) => type === 'http-01')
        if (!challenge) throw new AuthorityError(`${authorization.identifier.value}: the CA does not offer http-01 for it`)
        takeAway.push(await this.#post(challenge.token, await client.getChallengeKeyAuthorization(challenge)))
        await client.completeChallenge(challenge)
      }
      await until(signal, async () => {
        const authorizations = await client.getAuthorizations(order)
        const refused = authorizations.find(({ status }) => status !== 'valid' && status !== 'pending')
        if (refused) throw new AuthorityError(`${refused.identifier.value}: CA error: ${reasonOf(refused)}`)
        return authorizations.every(({ status }) => status === 'valid')
      })
    } finally {
      for (const away of takeAway) await away()
    }
  }

  async #finish(client: Client, order: Order, names: readonly string[], signal: AbortSignal): Promise<Pair> {
    const { crypto } = await import('acme-client')
    const key = await newKey()
    const [, request] = await crypto.createCsr({ altNames: [...names] }, key)
    let current = await client.finalizeOrder(order, request)
    await until(signal, async () => {
      if (current.status === 'invalid') throw new AuthorityError(`The CA issued no certificate for ${names.join(', ')}`)
      if (current.status === 'valid') return true
      current = await client.getOrder(order)
      return false
    })
    return { cert: await client.getCertificate(current), key }
  }
}

async function until(signal: AbortSignal, look: () => Promise<boolean>): Promise<void> {
  for (const pause of pauses) {
    if (await look()) return
    await sleep(pause, undefined, { signal })
  }
  throw new AuthorityError('The CA did not decide within two minutes')
}

function reasonOf({ status, challenges }: Authorization): string {
  const said = challenges.map((challenge) => ('error' in challenge ? challenge.error : undefined)).find((error) => error)
  const detail = said && typeof said === 'object' && 'detail' in said ? String(said.detail) : undefined
  return detail ?? `the authorization is ${status}`
}

/** A problem document (RFC 7807), as RFC 8555 6.7 has it. */
interface Problem {
  type?: unknown
  detail?: unknown
  subproblems?: unknown
}

/** The longest accepted Retry-After of a CA, in milliseconds. */
const longestPause = 7 * day

/** The refusal in a CA's answer; undefined for a success, or when the request must be repeated with another nonce (RFC 8555 6.5). */
function refusalIn({ status, headers, data }: CaAnswer): AuthorityError | undefined {
  if (status > 0 && status < 400) return undefined
  const problem: Problem = typeof data === 'object' && data !== null ? data : {}
  if (problem.type === 'urn:ietf:params:acme:error:badNonce') return undefined
  const said = [problem, ...(Array.isArray(problem.subproblems) ? (problem.subproblems as unknown[]) : [])]
    .map(describeProblem)
    .filter(Boolean)
  const words = said.length > 0 ? `CA error: ${said.join('; ')}` : `The CA answered ${status}`
  const kind = typeof problem.type === 'string' ? ` (${problem.type.replace(/^urn:ietf:params:acme:error:/, '')})` : ''
  return new AuthorityError(`${words}${kind}`.slice(0, 1000), pauseOf(headers['retry-after']))
}

/** `The key is bad` or `mx.example.com: the policy forbids it`. */
function describeProblem(problem: unknown): string {
  if (typeof problem !== 'object' || problem === null || !('detail' in problem) || typeof problem.detail !== 'string') return ''
  const identifier = 'identifier' in problem ? (problem.identifier as { value?: unknown } | null)?.value : undefined
  return typeof identifier === 'string' ? `${identifier}: ${problem.detail}` : problem.detail
}

/** Seconds or a date (RFC 9110 10.2.3), in milliseconds from now. */
function pauseOf(said: string | string[] | undefined): number {
  if (typeof said !== 'string') return 0
  const pause = /^\d{1,9}$/.test(said) ? Number(said) * 1000 : Date.parse(said) - Date.now()
  return pause > 0 ? Math.min(pause, longestPause) : 0
}
