import { parsePolicy, resolvePolicy, validateMx } from 'mailauth/lib/mta-sts.js'
import type { Basis } from '../../basis.ts'
import { day, iso, minute } from '../../core/clock.ts'
import { lruMap } from '../../core/memory.ts'
import type { Outside } from '../../net/outside.ts'
import { isAbsent, type Records } from '../../net/resolve.ts'
import { sql } from '../../store/database.ts'
import type { MtaStsPolicy, TlsFailure } from './tls-result.ts'

/** The result of a lookup: `unknown` when the DNS or the policy host did not answer and no policy is stored. */
type Found = MtaStsPolicy | 'unknown' | undefined

interface Row {
  policy_id: string
  policy: string
  expires_at: string
}

interface Deps extends Pick<Basis, 'database' | 'clock' | 'log'> {
  records: Records
  outside: Outside
}

/** Instead of an id, when the DNS did not answer. */
const unknown = Symbol('unknown')

/** How long a result is cached, in milliseconds, and how many are cached. */
const cacheTime = 5 * minute
const maxCached = 10_000

/** RFC 8461 3.3: at most 64 KiB, within a minute. */
const largest = 64 * 1024
const timeout = minute
const maxLines = 1000

/**
 * The MTA-STS policies of other domains. A policy stays in force until it expires, even when the DNS or the policy host do not answer: an attacker
 * could otherwise remove it.
 */
export class Policies {
  readonly #deps: Deps
  readonly #known = lruMap<{ policy: Promise<Found>; until: number }>(maxCached)
  /** Of the domains in `#known` whose policy could not be fetched, why. */
  readonly #failures = lruMap<TlsFailure>(maxCached)

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** The policy of a domain (lower-case A-labels); undefined when it has none. */
  of(domain: string): Promise<Found> {
    const now = this.#deps.clock.now()
    const known = this.#known.get(domain)
    if (known && known.until > now) return known.policy
    const policy = this.#lookUp(domain)
    this.#known.set(domain, { policy, until: now + cacheTime })
    policy.catch(() => this.#known.delete(domain))
    return policy
  }

  /** Why the policy of a domain could not be fetched at the last lookup; undefined when it could, or there is none. */
  failure(domain: string): TlsFailure | undefined {
    return this.#failures.get(domain)
  }

  async #lookUp(domain: string): Promise<Found> {
    const { database, clock } = this.#deps
    this.#failures.delete(domain)
    const now = clock.now()
    const row = await database.get<Row>(
      sql`SELECT policy_id, policy, expires_at FROM mta_sts_policies WHERE domain = ${domain} AND expires_at > ${iso(now)}`,
    )
    const kept = row && (JSON.parse(row.policy) as MtaStsPolicy)
    const id = await this.#id(domain)
    if (id === undefined || id === unknown) return kept ?? (id === unknown ? 'unknown' : undefined)
    // fetched again once a day, so that it does not expire while its host is blocked
    const fresh = kept !== undefined && Date.parse(row!.expires_at) - kept.max_age * 1000 > now - day
    if (fresh && row!.policy_id === id) return kept
    return (await this.#fetch(domain, id)) ?? kept ?? 'unknown'
  }

  /** The id in the DNS (RFC 8461 3.1): undefined without exactly one record of the kind. */
  async #id(domain: string): Promise<string | typeof unknown | undefined> {
    const { records, log } = this.#deps
    try {
      return (await resolvePolicy(domain, { resolver: (name) => records(name, 'TXT') })) || undefined
    } catch (error) {
      if (isAbsent(error) || (error as { code?: unknown }).code === 'multi_sts_records') return undefined
      log.info({ domain, err: error }, 'the DNS lookup of the MTA-STS policy failed')
      return unknown
    }
  }

  async #fetch(domain: string, id: string): Promise<MtaStsPolicy | undefined> {
    const { database, clock, outside, log } = this.#deps
    try {
      const { status, headers, body } = await outside.get(`https://mta-sts.${domain}/.well-known/mta-sts.txt`, {
        limit: largest,
        deadline: timeout,
        signal: new AbortController().signal,
      })
      if (status !== 200) throw new Error(`the policy host answered ${status}`)
      if (!/^text\/plain\s*(?:;|$)/i.test(String(headers['content-type'] ?? '')))
        throw new InvalidPolicy('the policy is not text/plain')
      const policy = readPolicy(body.toString('utf8'))
      const expires = iso(clock.now() + policy.max_age * 1000)
      await database.transaction((tx) =>
        tx.run(
          sql`INSERT INTO mta_sts_policies (domain, policy_id, policy, expires_at)
            VALUES (${domain}, ${id}, ${JSON.stringify(policy)}, ${expires}) ON CONFLICT (domain) DO UPDATE
            SET policy_id = excluded.policy_id, policy = excluded.policy, expires_at = excluded.expires_at`,
        ),
      )
      return policy
    } catch (error) {
      log.info({ domain, err: error }, 'MTA-STS policy could not be fetched')
      this.#failures.set(domain, fetchFailure(error))
      return undefined
    }
  }
}

class InvalidPolicy extends Error {}

/** RFC 8460 4.3.2.2 */
function fetchFailure(error: unknown): TlsFailure {
  const reason = error instanceof Error ? error.message.slice(0, 200) : null
  if (error instanceof InvalidPolicy) return { type: 'sts-policy-invalid', reason }
  const isCertificate = /^(?:CERT_|ERR_TLS|SELF_SIGNED|DEPTH_ZERO|UNABLE_)/.test(reason ?? '')
  return { type: isCertificate ? 'sts-webpki-invalid' : 'sts-policy-fetch-error', reason }
}

/** Reads a policy (RFC 8461 3.2); throws InvalidPolicy. */
function readPolicy(text: string): MtaStsPolicy {
  // the parser compares each mx with all before it
  if (text.split('\n', maxLines + 1).length > maxLines) throw new InvalidPolicy(`the policy has more than ${maxLines} lines`)
  try {
    const { mode, mx = [], maxAge } = parsePolicy(text)
    return { mode, mx: mx.map((one) => one.replace(/\.$/, '')), max_age: maxAge! }
  } catch (error) {
    throw new InvalidPolicy((error as Error).message)
  }
}

/** True if the patterns of a policy name the server: itself, or `*.` in place of its first label (RFC 8461 4.1). */
export function policyNames({ mx }: Pick<MtaStsPolicy, 'mx'>, hostname: string): boolean {
  return validateMx(hostname, { mode: 'enforce', mx }).valid
}
