import type { Basis } from '../../basis.ts'
import { entriesOf, isListed } from '../../core/address-list.ts'
import { iso } from '../../core/clock.ts'
import { Fault, invalid } from '../../core/fault.ts'
import type { Caller } from '../../core/scopes.ts'
import type { Identities, IdentityRow } from '../../identities/identities.ts'
import { type Reader, sql } from '../../store/database.ts'
import type { Rules, SenderRules, SenderRulesInput } from './model.ts'

/** Bytes of the lists of one identity or account. */
const maxBytes = 16 * 1024

const everyone: Rules = { allow: [], block: [], require_dmarc: false, replies: true, max_score: null }

/** Why a message is not accepted as others are. Such a reason is told to the sender when the message is refused. */
export type Objection = 'blocked_sender' | 'unlisted_sender' | 'unverified_sender' | 'suspicious'

/** What rules look at in a message. */
interface Arrival {
  mail_from: string
  /** The address in From. */
  from: string
  isVerified: boolean
  score: number
  /** Resolves with true for a verified answer to one that was written to. */
  isAnswer: () => Promise<boolean>
}

interface Deps extends Pick<Basis, 'database' | 'clock'> {
  identities: Identities
}

/** The rules of accounts and identities for who may write to them. */
export class SenderRulesStore {
  readonly #deps: Deps

  constructor(deps: Deps) {
    this.#deps = deps
    deps.identities.onRemove(async (tx, id) => {
      await tx.run(sql`DELETE FROM sender_rules WHERE subject_id = ${id}`)
    })
  }

  /** Those of an identity, or of the account for null. */
  async get(caller: Caller, identityId: string | null): Promise<SenderRules> {
    return storedRules(this.#deps.database, await this.#subject(caller, identityId))
  }

  /** Changes what is given. Throws Fault invalid_request with the place of an entry that is none or contradicts another. */
  async update(caller: Caller, identityId: string | null, input: SenderRulesInput): Promise<SenderRules> {
    const allow = input.allow && entriesOf(input.allow, 'allow')
    const block = input.block && entriesOf(input.block, 'block')
    const subject = await this.#subject(caller, identityId)
    return this.#deps.database.transaction(async (tx) => {
      const before = await storedRules(tx, subject)
      const rules: Rules = {
        allow: allow ?? before.allow,
        block: block ?? before.block,
        require_dmarc: input.require_dmarc ?? before.require_dmarc,
        replies: input.replies ?? before.replies,
        max_score: input.max_score === undefined ? before.max_score : input.max_score,
      }
      requireConsistent(rules)
      const updated_at = iso(this.#deps.clock.now())
      await tx.run(
        sql`INSERT INTO sender_rules (subject_id, rules, updated_at) VALUES (${subject}, ${JSON.stringify(rules)}, ${updated_at})
          ON CONFLICT (subject_id) DO UPDATE SET rules = excluded.rules, updated_at = excluded.updated_at`,
      )
      return { ...rules, updated_at }
    })
  }

  /** True if the envelope sender may not write to an identity, whatever the message says. */
  async blocks(owner: IdentityRow, mailFrom: string): Promise<boolean> {
    const all = await this.#of(this.#deps.database, owner)
    return all.some(({ block }) => isListed(block, mailFrom))
  }

  /** Why a message is not accepted for an identity as others are; null if it is. */
  async objection(reader: Reader, owner: IdentityRow, arrival: Arrival): Promise<Objection | null> {
    for (const rules of await this.#of(reader, owner)) {
      const found = await objectionOf(rules, arrival)
      if (found !== null) return found
    }
    return null
  }

  async #of(reader: Reader, { id, account_id }: IdentityRow): Promise<Rules[]> {
    const rows = await reader.all<{ rules: string }>(
      sql`SELECT rules FROM sender_rules WHERE subject_id IN (${id}, ${account_id}) ORDER BY subject_id`,
    )
    return rows.map(({ rules }) => JSON.parse(rules) as Rules)
  }

  async #subject(caller: Caller, identityId: string | null): Promise<string> {
    // an identity that is not the key's is not found, as everywhere
    const subject = identityId === null ? caller.account_id : (await this.#deps.identities.row(caller, identityId)).id
    requireUnbound(caller)
    return subject
  }
}

async function objectionOf(rules: Rules, { mail_from, from, isVerified, score, isAnswer }: Arrival): Promise<Objection | null> {
  if (isListed(rules.block, from) || isListed(rules.block, mail_from)) return 'blocked_sender'
  if (rules.require_dmarc && !isVerified) return 'unverified_sender'
  if (rules.allow.length > 0 && !isListed(rules.allow, from) && !(rules.replies && (await isAnswer()))) return 'unlisted_sender'
  return rules.max_score !== null && score > rules.max_score ? 'suspicious' : null
}

/** The rules of an identity or an account. */
async function storedRules(reader: Reader, subject: string): Promise<SenderRules> {
  const row = await reader.get<{ rules: string; updated_at: string }>(
    sql`SELECT rules, updated_at FROM sender_rules WHERE subject_id = ${subject}`,
  )
  return row ? { ...(JSON.parse(row.rules) as Rules), updated_at: row.updated_at } : { ...everyone, updated_at: null }
}

function requireConsistent({ allow, block }: Rules): void {
  const allowed = new Set(allow)
  for (const [index, entry] of block.entries()) {
    if (allowed.has(entry)) throw invalid(`block.${index}`, `${entry} is allowed too; remove it from allow or from block.`)
  }
  if (Buffer.byteLength(JSON.stringify([allow, block])) > maxBytes)
    throw invalid(block.length > allow.length ? 'block' : 'allow', 'allow and block must be at most 16 KiB together, as JSON.')
}

/** Throws Fault 403, code `bound_key`: a key that is bound to one identity neither sees nor changes who may write to it. */
export function requireUnbound({ identity_id }: Pick<Caller, 'identity_id'>): void {
  if (identity_id === null) return
  throw new Fault(
    'forbidden',
    'A key that is bound to one identity neither sees or changes who may write to it nor releases what was set aside. Ask a person of the account, or whoever runs this box.',
    { code: 'bound_key' },
  )
}
