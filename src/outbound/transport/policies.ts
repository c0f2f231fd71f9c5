import { createRequire } from 'node:module'
import type { Basis } from '../../basis.ts'
import { day, iso, minute } from '../../core/clock.ts'
import { sweep } from '../../core/cron.ts'
import { lruMapOfBytes } from '../../core/memory.ts'
import { organizationOf } from '../../core/domain-names.ts'
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
  used_at: string
}

interface Result {
  policy: Found
  /** Why it could not be fetched. */
  failure?: TlsFailure
}

interface Known extends Result {
  until: number
}

interface Deps extends Pick<Basis, 'database' | 'clock' | 'log'> {
  records: Records
  outside: Outside
}

/** Instead of an id, when the DNS did not answer. */
const unknown = Symbol('unknown')

/** How long a result is cached, in milliseconds, and the bytes of all. */
const cacheTime = 5 * minute
const maxCached = 8 * 1024 * 1024

/** How long a policy that nobody asks for is stored, in milliseconds, and how many are stored: in all, and of one organizational domain. */
const unusedTime = 30 * day
const maxStored = 10_000
const maxOfOrganization = 50

/** Rows that are deleted in one transaction. */
const batch = 500

/** RFC 8461 3.3: at most 64 KiB, within a minute. */
const largest = 64 * 1024
const timeout = minute
const maxLines = 1000

/** The patterns of a policy that are read, and their characters together. Domains have a handful. */
const maxPatterns = 100
const maxPatternText = 8192

/**
 * The MTA-STS policies of other domains. A policy stays in force until it expires, even when the DNS or the policy host do not answer: an attacker
 * could otherwise remove it.
 */
export class Policies {
  readonly #deps: Deps
  readonly #known = lruMapOfBytes<Known>(maxCached, sizeOf)
  readonly #pending = new Map<string, Promise<Found>>()

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** The policy of a domain (lower-case A-labels); undefined when it has none. */
  async of(domain: string): Promise<Found> {
    const known = this.#known.get(domain)
    if (known && known.until > this.#deps.clock.now()) return known.policy
    const pending = this.#pending.get(domain) ?? this.#find(domain).finally(() => this.#pending.delete(domain))
    this.#pending.set(domain, pending)
    return pending
  }

  /** Why the policy of a domain could not be fetched at the last lookup; undefined when it could, or there is none. */
  failure(domain: string): TlsFailure | undefined {
    return this.#known.get(domain)?.failure
  }

  async #find(domain: string): Promise<Found> {
    const until = this.#deps.clock.now() + cacheTime
    const result = await this.#lookUp(domain)
    this.#known.set(domain, { ...result, until })
    return result.policy
  }

  async #lookUp(domain: string): Promise<Result> {
    const now = this.#deps.clock.now()
    const row = await this.#stored(domain, now)
    const kept = row && readStored(row.policy)
    const id = await this.#id(domain)
    if (id === undefined || id === unknown) return { policy: kept ?? (id === unknown ? 'unknown' : undefined) }
    // fetched again once a day, so that it does not expire while its host is blocked
    const fresh = kept !== undefined && Date.parse(row!.expires_at) - kept.max_age * 1000 > now - day
    if (fresh && row!.policy_id === id) return { policy: kept }
    const fetched = await this.#fetch(domain, id)
    return fetched.policy ? fetched : { ...fetched, policy: kept ?? 'unknown' }
  }

  /** The stored policy, which is noted as used. */
  async #stored(domain: string, now: number): Promise<Row | undefined> {
    const { database } = this.#deps
    const row = await database.get<Row>(
      sql`SELECT policy_id, policy, expires_at, used_at FROM mta_sts_policies WHERE domain = ${domain} AND expires_at > ${iso(now)}`,
    )
    if (row && row.used_at < iso(now - day)) {
      await database.transaction((tx) => tx.run(sql`UPDATE mta_sts_policies SET used_at = ${iso(now)} WHERE domain = ${domain}`))
    }
    return row
  }

  /** The id in the DNS (RFC 8461 3.1): undefined without exactly one record of the kind. */
  async #id(domain: string): Promise<string | typeof unknown | undefined> {
    const { records, log } = this.#deps
    try {
      return (await mtaSts().resolvePolicy(domain, { resolver: (name) => records(name, 'TXT') })) || undefined
    } catch (error) {
      if (isAbsent(error) || (error as { code?: unknown }).code === 'multi_sts_records') return undefined
      log.info({ domain, err: error }, 'the DNS lookup of the MTA-STS policy failed')
      return unknown
    }
  }

  async #fetch(domain: string, id: string): Promise<Result> {
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
      const now = clock.now()
      const expires = iso(now + policy.max_age * 1000)
      const text = JSON.stringify(policy)
      const organization = organizationOf(domain)
      await database.transaction(async (tx) => {
        await tx.run(
          sql`INSERT INTO mta_sts_policies (domain, organizational_domain, policy_id, policy, expires_at, used_at)
            VALUES (${domain}, ${organization}, ${id}, ${text}, ${expires}, ${iso(now)}) ON CONFLICT (domain) DO UPDATE
            SET organizational_domain = excluded.organizational_domain, policy_id = excluded.policy_id, policy = excluded.policy,
              expires_at = excluded.expires_at, used_at = excluded.used_at`,
        )
        await tx.run(
          sql`DELETE FROM mta_sts_policies WHERE domain IN (
            SELECT domain FROM mta_sts_policies WHERE organizational_domain = ${organization}
            ORDER BY used_at DESC LIMIT ${Number.MAX_SAFE_INTEGER} OFFSET ${maxOfOrganization})`,
        )
        await tx.run(
          sql`DELETE FROM mta_sts_policies WHERE domain IN (
            SELECT domain FROM mta_sts_policies ORDER BY used_at DESC LIMIT ${Number.MAX_SAFE_INTEGER} OFFSET ${maxStored})`,
        )
      })
      // parts of the text that was fetched would keep it in memory
      return { policy: readStored(text) }
    } catch (error) {
      log.info({ domain, err: error }, 'MTA-STS policy could not be fetched')
      return { policy: undefined, failure: fetchFailure(error) }
    }
  }
}

/** Deletes the stored policies that have expired, and those that were not used for a month. */
export async function forgetPolicies({ database, clock }: Pick<Deps, 'database' | 'clock'>, signal?: AbortSignal): Promise<void> {
  const [now, unused] = [iso(clock.now()), iso(clock.now() - unusedTime)]
  const step = async (): Promise<boolean> => {
    const { changes } = await database.transaction((tx) =>
      tx.run(
        sql`DELETE FROM mta_sts_policies WHERE domain IN (
          SELECT domain FROM mta_sts_policies WHERE expires_at <= ${now} OR used_at < ${unused} LIMIT ${batch})`,
      ),
    )
    return changes === batch
  }
  await sweep(step, signal)
}

/** The bytes of a cached result. */
function sizeOf({ policy, failure }: Known, domain: string): number {
  const patterns = typeof policy === 'object' ? policy.mx : []
  const characters = patterns.reduce((sum, pattern) => sum + pattern.length + 32, 0)
  return 512 + domain.length + characters + (failure?.reason?.length ?? 0) * 2
}

class InvalidPolicy extends Error {}

/** RFC 8460 4.3.2.2 */
function fetchFailure(error: unknown): TlsFailure {
  const reason = error instanceof Error ? error.message.slice(0, 200) : null
  if (error instanceof InvalidPolicy) return { type: 'sts-policy-invalid', reason }
  const isCertificate = /^(?:CERT_|ERR_TLS|SELF_SIGNED|DEPTH_ZERO|UNABLE_)/.test(reason ?? '')
  return { type: isCertificate ? 'sts-webpki-invalid' : 'sts-policy-fetch-error', reason }
}

/**
 * Reads a policy (RFC 8461 3.2); throws InvalidPolicy. Patterns beyond the first are left out, so that servers that only they name get nothing. Were
 * the policy invalid instead, the domain's mail would go unprotected.
 */
function readPolicy(text: string): MtaStsPolicy {
  const lines = text.split('\n', maxLines + 1)
  if (lines.length > maxLines) throw new InvalidPolicy(`the policy has more than ${maxLines} lines`)
  let patterns = 0
  let characters = 0
  // left out before they are parsed: the parser compares each mx with all before it
  const read = lines.filter((line) => {
    if (!/^\s*mx\s*:/i.test(line)) return true
    patterns += 1
    characters += line.length
    return patterns <= maxPatterns && characters <= maxPatternText
  })
  try {
    const { mode, mx = [], maxAge } = mtaSts().parsePolicy(read.join('\n'))
    return { mode, mx: mx.map((one) => one.replace(/\.$/, '')), max_age: maxAge! }
  } catch (error) {
    throw new InvalidPolicy((error as Error).message)
  }
}

/** A policy as it is stored. Former versions stored all of its patterns. */
function readStored(text: string): MtaStsPolicy {
  const policy = JSON.parse(text) as MtaStsPolicy
  return { ...policy, mx: policy.mx.slice(0, maxPatterns) }
}

/** True if the patterns of a policy name the server: itself, or `*.` in place of its first label (RFC 8461 4.1). */
export function policyNames({ mx }: Pick<MtaStsPolicy, 'mx'>, hostname: string): boolean {
  return mtaSts().validateMx(hostname, { mode: 'enforce', mx }).valid
}

const require = createRequire(import.meta.url)

// loaded when it is first used: it takes ten megabytes
const mtaSts = () => require('mailauth/lib/mta-sts.js') as typeof import('mailauth/lib/mta-sts.js')
