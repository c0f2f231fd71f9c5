import { actorOf, type AuditEntry, type AuditRecorder } from '../core/audit.ts'
import { Fault } from '../core/fault.ts'
import type { Caller } from '../core/scopes.ts'
import type { Database, Recording } from '../store/database.ts'
import type { Audited, AnyRoute } from './route.ts'

export interface AuditDeps {
  database: Database
  /** Without it nothing is recorded. */
  audit?: AuditRecorder | undefined
}

/** The part of a call that the audit log is about. */
interface AuditedCall {
  caller: Caller
  params: Record<string, string>
}

/** The types of errors that say that the caller may not do this. */
const refusing = new Set(['forbidden', 'unauthorized'])

/**
 * Records a call whose route declares what the audit log says of it: a change in its first transaction that wrote, else once it has ended, and
 * a read together with others. A refusal is recorded as one.
 */
export class CallAudit {
  readonly #route: AnyRoute
  readonly #call: AuditedCall
  readonly #body: unknown
  readonly #deps: AuditDeps

  constructor(route: AnyRoute, call: AuditedCall, body: unknown, deps: AuditDeps) {
    this.#route = route
    this.#call = call
    this.#body = body
    this.#deps = deps
  }

  /** Runs the handler. */
  run<T>(work: () => Promise<T>): Promise<T> {
    return this.#run(work, (result) => this.#note(result))
  }

  /** Runs what answers a repetition: it is recorded only when it writes. */
  repeat<T>(work: () => Promise<T>): Promise<T> {
    return this.#run(work, async () => undefined)
  }

  async #run<T>(work: () => Promise<T>, unwritten: (result: T) => Promise<void>): Promise<T> {
    const { audit, database } = this.#deps
    const declared = this.#declared
    if (!audit || !declared) return work()
    const recording: Recording = {
      recorded: false,
      record: async (tx, result) => {
        if (declared.when?.(result as never) === false) return false
        const entry = this.#entry(declared, result)
        // that of a new resource is known from the transaction that stores it
        if (this.#route.status === 201 && entry.target === null) return false
        await audit.append(tx, entry)
        return true
      },
    }
    const reads = declared.read ?? (this.#route.method === 'GET' && !this.#route.effect)
    try {
      const result = await (reads ? work() : database.recording(recording, work))
      if (!recording.recorded) await unwritten(result)
      return result
    } catch (error) {
      if (error instanceof Fault && recording.recorded) this.#collectFailure(declared, error)
      else if (error instanceof Fault) recordRefusal(this.#route, this.#call, error, this.#deps)
      throw error
    }
  }

  get #declared(): Audited | undefined {
    return declaredOf(this.#route)
  }

  /** Records what wrote nothing, or not in a transaction that says what it made. */
  async #note(result: unknown): Promise<void> {
    const { audit, database } = this.#deps
    const declared = this.#declared!
    const entry = this.#entry(declared, result)
    if (declared.read || this.#route.method === 'GET') audit!.collect(entry)
    else await database.transaction((tx) => audit!.append(tx, entry))
  }

  #collectFailure({ action: call }: Audited, { code }: Fault): void {
    const entry = this.#entry({ action: 'call.failed' }, undefined)
    this.#deps.audit!.collect({ ...entry, detail: { call, code } })
  }

  #entry({ action, detail, target: targetOf }: Audited, result: unknown): AuditEntry {
    const made = isRecord(result) ? result : {}
    const own = this.#route.status === 201 ? textOf(made['id']) : subjectOf(this.#route, this.#call.params)
    const target = targetOf && isRecord(result) ? (targetOf(result as never) ?? null) : own
    const { caller } = this.#call
    const who = actorOf(caller)
    return {
      ...who,
      // what the operator does to an account is in the log of that account
      account_id: target?.startsWith('acct_') ? target : who.account_id,
      action,
      target,
      identity_id: identityOf(this.#route, this.#call, target) ?? textOf(made['identity_id']) ?? caller.identity_id,
      detail: { ...namesIn(this.#route, this.#body), ...detail?.(this.#body as never, made as never) },
    }
  }
}

/** Records that a caller was not allowed to make a call that the audit log is about; nothing for other faults. */
export function recordRefusal(route: AnyRoute, call: AuditedCall, fault: Fault, { audit }: Pick<AuditDeps, 'audit'>): void {
  const declared = declaredOf(route)
  if (!audit || !declared || !refusing.has(fault.type) || call.caller.account_id === '') return
  const target = subjectOf(route, call.params)
  audit.collect({
    ...actorOf(call.caller),
    action: 'call.refused',
    target,
    identity_id: identityOf(route, call, target) ?? call.caller.identity_id,
    detail: { call: declared.action, code: fault.code ?? fault.type },
  })
}

function declaredOf({ audit }: AnyRoute): Audited | undefined {
  return typeof audit === 'string' ? { action: audit } : audit
}

/** The names of the last ids of the paths of routes. */
const lastIds = new Map<string, string>()

function lastIdOf(path: string): string {
  const names = [...path.matchAll(/:(\w+)/g)].map(([, name]) => name!)
  return names.findLast((name) => name.endsWith('id')) ?? ''
}

/** The last id of the path. */
function subjectOf({ path }: AnyRoute, params: Record<string, string>): string | null {
  let name = lastIds.get(path)
  if (name === undefined) lastIds.set(path, (name = lastIdOf(path)))
  return idIn(params[name])
}

/** Only what has the form of an id: a path is what its caller wrote. */
function idIn(text: string | undefined): string | null {
  return text !== undefined && /^[a-z]{2,8}_[0-7][0-9a-hjkmnp-tv-z]{25}$/.test(text) ? text : null
}

function identityOf({ path }: AnyRoute, { params }: AuditedCall, target: string | null): string | null {
  if (path.startsWith('/identities/:id')) return idIn(params['id'])
  return target?.startsWith('ident_') ? target : null
}

/** Which fields a change has: their names are those of the API. */
function namesIn({ method, body: shape }: AnyRoute, body: unknown): Record<string, unknown> {
  if (method === 'GET' || shape === undefined || !isRecord(body)) return {}
  const fields = Object.keys(body).filter((name) => body[name] !== undefined)
  return fields.length === 0 ? {} : { fields }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}
