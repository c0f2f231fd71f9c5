import type { Scope } from '../../../src/core/scopes.ts'
import { type RoutePath, routePaths } from '../../../src/http/route.ts'
import { rights as table } from '../../contract/rights-table.ts'
import { absent, Asking, type Question } from '../../contract/asking.ts'
import type { Estate } from '../../contract/estate.ts'
import { pick, type Random, randomFrom } from '../../support/random.ts'
import { atOnce } from '../box/at-once.ts'
import { type InhabitedBox, InhabitedHome } from '../box/inhabited-box.ts'
import { faultsOfLog } from '../box/log.ts'
import { World } from '../box/world.ts'
import { Credentials, type People, plantPeople } from '../http/credentials.ts'
import {
  admissionOf,
  type Cell,
  cellAt,
  cellCount,
  type Expected,
  idsOf,
  type Place,
  places,
  reachOf,
  scopesOfPeople,
} from '../http/cells.ts'
import { questionOf } from '../http/questions.ts'
import { type Cases, caseSeed, type CaseResult, type Setting, type Trial } from '../trial.ts'

/** Cells of one case, and calls that are open at once. */
const [cellsOfCase, clients] = [150, 4]

/** Further calls of a case, which count as no cells: those that are nobody's, and changes that are made. */
const [othersOfCase, writesOfCase] = [10, 2]

export const rights: Trial = {
  name: 'rights',
  about:
    'Every call of the API, by every kind of key and session: with each scope alone, with all, with none and with all but the one that is needed; of the ' +
    'account, of another and of one that is stopped; bound to an identity; revoked, expired and unknown; of people with each role. Each names objects of its ' +
    'own account, of another identity of it, of one that is suspended, deleted or expired, of another account, or none. Who may is admitted, who may not is ' +
    'refused as tables written by hand say, also of the roles, nobody is shown what is not theirs, and nothing is changed by what was refused. A call that may ' +
    'change something is asked with a parameter that there is none of, which tells that it was admitted; beside the cells two such calls of each 150 are ' +
    'made, by a key with the scopes that they need alone or by an owner, and succeed, and ten are made that nobody may: by methods that a path does not have, ' +
    'by HEAD, and without a signature those that providers make and those of the machine of the box.',
  goal: { tries: cellCount, unit: 'cells', faults: 'all cells right' },
  short: 300,
  hours: 0.1,
  broken: {
    'dropped-scope': {
      what: 'of calls that need two scopes the second is not checked',
      file: 'src/http/admission.ts',
      find: '[[route.scope].flat(), route.alsoScope ?? []].find(',
      replace: '[[route.scope].flat()].find(',
    },
    'writing-reader': {
      what: 'people with the role reader may change identities',
      file: 'src/core/scopes.ts',
      find: 'reader: new Set(reading)',
      replace: "reader: new Set([...reading, 'identities:write'])",
    },
    'open-machine': {
      what: 'what only the machine of the box may call is open to keys',
      file: 'src/http/admission.ts',
      find: 'if (route.local) {',
      replace: "if (route.local && caller.key_id === '') {",
    },
    'effect-by-head': {
      what: 'a call that does something may be made by HEAD',
      file: 'src/http/api.ts',
      find: "if (request.method === 'HEAD' && route.effect) throw",
      replace: "if (request.method === 'HEAD' && route.effect && state === undefined) throw",
    },
    'dropped-owner': {
      what: 'identities of other accounts are found',
      file: 'src/identities/identities.ts',
      find: "if (!row || row.account_id !== caller.account_id || row.status === 'deleted') throw notFound('identity')\n    return row",
      replace: "if (!row || row.status === 'deleted') throw notFound('identity')\n    return row",
    },
    'dropped-binding': {
      what: 'a key that is bound to an identity reaches the others of its account',
      file: 'src/identities/identities.ts',
      find: 'return caller.identity_id === null || caller.identity_id === id',
      replace: "return caller.identity_id === null || id !== ''",
    },
    'dropped-stop': {
      what: 'the keys of a stopped account may go on',
      file: 'src/http/admission.ts',
      find: 'return stopped && !route?.whileStopped ? accountStopped() : undefined',
      replace: 'return stopped && !route ? accountStopped() : undefined',
    },
  },
  async open({ directory, program, seed }: Setting): Promise<Cases> {
    const world = await World.open(directory, program, randomFrom(seed))
    const { home, more: people } = await InhabitedHome.open(world, plantPeople)
    const box = await home.start()
    const trial = new RightsTrial(box, people, seed)
    return {
      run: (number) => trial.run(number),
      async close() {
        await box.close()
        await world.close()
      },
    }
  },
}

class RightsTrial {
  readonly #box: InhabitedBox
  readonly #estates: Record<Exclude<Place, 'absent'>, Estate>
  readonly #asking: Asking
  readonly #credentials: Credentials
  readonly #spellings: Map<string, RoutePath>
  /** What providers and the machine of the box alone call. */
  readonly #closed: readonly RoutePath[]
  readonly #seed: number
  readonly #written: Estate[] = []
  readonly #questions = new Map<string, Promise<Question>>()

  constructor(box: InhabitedBox, people: People, seed: number) {
    const { own, sibling, foreign } = box
    this.#box = box
    this.#estates = { own, sibling, foreign, ...people.estates }
    this.#asking = new Asking(box)
    this.#credentials = new Credentials(box, people, this.#estates)
    this.#spellings = new Map(this.#asking.spellings.map((spelling) => [`${spelling.method} ${spelling.path}`, spelling]))
    this.#closed = routePaths(box.routes).filter(({ route }) => route.raw || route.local)
    this.#seed = seed
  }

  async run(number: number): Promise<CaseResult> {
    const cells = Array.from({ length: cellsOfCase }, (_, index) => cellAt(shuffled(this.#seed, number * cellsOfCase + index)))
    // what these calls are asked with is made before
    for (const { name } of cells) await this.#question(this.#spellings.get(name)!)
    const before = this.#contents()
    const answers = await atOnce(
      clients,
      cells.map((cell) => () => this.#faultOf(cell)),
    )
    const random = randomFrom(caseSeed(this.#seed, number))
    const others = await this.#faultsOfOthers(random)
    const after = this.#contents()
    const changed = [...after].flatMap(([row, text]) => (before.get(row) === text ? [] : [row]))
    const gone = [...before.keys()].filter((row) => !after.has(row))
    const faults = [...answers.flatMap((fault) => fault ?? []), ...others, ...(await this.#faultsOfWrite(random))]
    if (changed.length + gone.length > 0) faults.push(`refused calls changed ${[...changed, ...gone].slice(0, 5).join(', ')}`)
    return { tries: cellsOfCase, faults: [...faults, ...faultsOfLog(this.#box.running)] }
  }

  async #faultOf(cell: Cell): Promise<string | undefined> {
    const admission = admissionOf(cell)
    const expected = admission === 'allowed' ? reachOf(cell) : admission
    const spelling = this.#spellings.get(cell.name)!
    const credentials = await this.#credentials.of(cell)
    // who is admitted is told of an unknown parameter before anything is looked at or done
    const probes = expected === 'allowed' && !(cell.name.startsWith('GET ') && isAsked(spelling) && credentials !== undefined)
    const { headers: usual, ...question } = probes ? {} : await this.#question(spelling)
    const asked: Question = {
      ...question,
      ...credentials,
      ...(probes ? { query: { nonsense: 'x' } } : {}),
      headers: { ...usual, ...credentials.headers },
    }
    const what = `${cell.name} ${described(cell)}`
    try {
      const told = await this.#asking.ask(spelling, this.#path(cell, spelling), asked)
      const answer = `${told.status} ${told.json?.error?.code ?? ''}`.trim()
      if (!isAsExpected(expected, probes, told.status, told.json?.error?.code))
        return `${what}: ${answer} instead of ${inWords(expected, probes)}`
      const stranger = told.status < 300 && this.#strangers(cell).find((id) => told.text.includes(id))
      return stranger ? `${what}: the answer tells of ${stranger}` : undefined
    } catch (error) {
      return `${what}: ${(error as Error).message}`
    }
  }

  /** Calls that are nobody's: by a method that a path does not have, and those of providers and of the machine of the box; and reads by HEAD. */
  async #faultsOfOthers(random: Random): Promise<string[]> {
    const faults: string[] = []
    // a key with every scope may make it by GET
    const effect = pick(
      [...this.#spellings.values()].filter(({ method, route }) => method === 'GET' && route.effect),
      random,
    )
    const { status: byHead } = await this.#box.box.call('HEAD', this.#asking.path(effect, this.#estates.own))
    if (byHead !== 404) faults.push(`HEAD ${effect.path}, which does something, by a key with every scope: ${byHead}`)
    for (let index = 0; index < othersOfCase; index += 1) {
      const cell = cellAt(random(cellCount))
      const isClosed = random(4) === 0
      const spelling = isClosed ? pick(this.#closed, random) : this.#spellings.get(cell.name)!
      const isRead = !isClosed && spelling.method === 'GET' && random(2) === 0
      const method = isClosed ? spelling.method : isRead ? 'HEAD' : pick(this.#undeclared(spelling.path), random)
      const path = isClosed ? spelling.path.replace(':id', this.#estates.own.account) : this.#path(cell, spelling)
      const { key, cookie, headers } = await this.#credentials.of(cell)
      const page = cookie === undefined ? {} : { Cookie: cookie, Origin: this.#box.box.url }
      const { status } = await this.#box.box.call(method, path, undefined, { key: key ?? null, headers: { ...page, ...headers } })
      const admission = admissionOf(cell)
      const expected = admission === 'allowed' ? reachOf(cell) : admission
      const isRight =
        !isRead || spelling.route.effect ? [401, 403, 404].includes(status) : expected === 'allowed' || status === expected.status
      if (!isRight) faults.push(`${method} ${spelling.path} ${described(cell)}: ${status}`)
    }
    return faults
  }

  /** The methods that no call of this path has. */
  #undeclared(path: string): string[] {
    return ['PUT', 'POST', 'PATCH', 'DELETE'].filter((method) => !this.#spellings.has(`${method} ${path}`))
  }

  /** Calls that change something, each by a key that may do no more than that or by an owner, on an estate of its own. */
  async #faultsOfWrite(random: Random): Promise<string[]> {
    const found: string[] = []
    for (let count = 0; count < writesOfCase; count += 1) found.push(...(await this.#faultsOfOneWrite(random)))
    return found
  }

  async #faultsOfOneWrite(random: Random): Promise<string[]> {
    const writes = [...this.#spellings.values()].filter(
      (one) => one.method !== 'GET' && isAsked(one) && !neverDone.test(one.path),
    )
    const spelling = pick(writes, random)
    const name = `${spelling.method} ${spelling.path}`
    const estate = await this.#box.settle(`${name} in case ${random(1_000_000)}`)
    this.#written.push(estate)
    const { path, question } = await this.#asking.good(spelling, estate)
    const { needs } = table.get(name)!
    // the jobs of an estate are exports of all that it has
    const besides: Scope[] = spelling.path.includes('/jobs/') ? [...scopesOfPeople.reader, 'messages:write'] : []
    const scopes = [...needs.map((any) => pick(any, random)), ...besides]
    const isPerson = random(3) === 0
    const key = isPerson ? null : await this.#box.plantKey({ account: estate.account, scopes })
    const cookie = isPerson ? await this.#box.plantSession(estate.account) : undefined
    const page = cookie === undefined ? {} : { Cookie: cookie, Origin: this.#box.box.url }
    const headers = { ...question.headers, ...page }
    // an answer without the fields that the key may not read
    const { status, body } = await this.#box.box.call(spelling.method, path, question.body, { key, headers })
    const code: unknown = body?.error?.['code']
    // what a key grants or is told of it must have itself
    const isGrant = !isPerson && /^\/v1\/(?:api-keys|webhooks|realtime)\b/.test(spelling.path)
    const grants = isGrant && ['beyond_own', 'missing_scope'].includes(String(code))
    if (status < 300 || grants || code === refusedWith.get(name)) return []
    const who = isPerson ? 'by an owner' : 'with a key of the scopes that it needs'
    return [`${name} ${who}: ${status} ${String(code)}`]
  }

  #path({ place, mixed }: Cell, spelling: RoutePath): string {
    const { own } = this.#estates
    const ids = idsOf(spelling.path)
    const objects = (estate: Estate, wanted: string[], change: (id: string) => string): Record<string, string> => {
      const segments = spelling.path.split('/')
      const real = this.#asking.path(spelling, estate).split('/')
      return Object.fromEntries(wanted.map((id) => [id, change(real[segments.indexOf(`:${id}`)]!)]))
    }
    const wanted = mixed ? ids.slice(-1) : ids
    if (place === 'absent') return this.#asking.path(spelling, own, objects(own, wanted, absent))
    return this.#asking.path(spelling, own, objects(this.#estates[place], wanted, String))
  }

  #question(spelling: RoutePath): Promise<Question> {
    const name = `${spelling.method} ${spelling.path}`
    const known = this.#questions.get(name)
    if (known) return known
    const made = questionOf(this.#asking, spelling, this.#estates.own)
    this.#questions.set(name, made)
    return made
  }

  /** Ids that the answer to a caller must not have. */
  #strangers({ caller, name }: Cell): string[] {
    if (caller.kind === 'nobody' || table.get(name)!.operator || table.get(name)!.needs.length === 0) return []
    const bound = caller.kind === 'key' ? caller.bound : undefined
    const others = Object.entries(this.#estates).filter(([place]) =>
      bound === undefined ? places[place as Place] !== caller.account : place !== bound,
    )
    return others.flatMap(([, { objects, account }]) => [
      ...Object.values(objects).filter((id) => id.includes('_')),
      ...(bound === undefined ? [account] : []),
    ])
  }

  /** Each row of what the estates have; the written ones, and what goes on there by itself, are left out. */
  #contents(): Map<string, string> {
    const { deleted, expired, ...living } = this.#estates
    const passing = new Set<unknown>([deleted, expired, ...this.#written].flatMap(({ objects }) => Object.values(objects)))
    const identities = new Set<unknown>(Object.values(living).map(({ objects }) => objects['identities/:id']))
    const rows = new Map<string, string>()
    for (const [name, columns] of Object.entries(contents)) {
      for (const row of this.#box.database.prepare(`SELECT ${columns} FROM ${name}`).all()) {
        // the box makes one of this name when it first has mail; a key of a caller is made when it is first needed
        if (row['name'] === 'postmaster' || row['label'] === 'planted') continue
        if (passing.has(row['id']) || (row['identity_id'] !== undefined && !identities.has(row['identity_id']))) continue
        rows.set(`${name} ${row['id']}`, JSON.stringify(row))
      }
    }
    return rows
  }
}

/** What only a call changes: tables, and their columns. Left out are what goes on by itself: queues, states of checks, sessions, counters, events. */
const contents = {
  identities: 'id, name, status, metadata, expires_at',
  addresses: 'address AS id, identity_id',
  emails: 'id, identity_id, read',
  sms: 'id, identity_id, read',
  trash: 'id, identity_id, kind',
  cards: '*',
  card_transactions: 'id, card_id, amount_cents',
  totp_entries: 'id, identity_id',
  stored_logins: 'id, identity_id, label',
  phone_numbers: 'id, identity_id, number',
  sms_opt_outs: "number || ' ' || peer AS id",
  aliases: 'id, domain_id, address',
  domains: 'id, name, is_default, catch_all',
  dkim_keys: 'seq AS id, domain_id',
  suppressions: 'id, account_id',
  agents: 'id, identity_id, handle, display_name, description',
  erc8004_links: 'id, agent_id, token_id',
  reputation_reports: 'id, subject',
  webhooks: 'id, url, events, scopes, active, description, secret',
  policies: 'subject_id AS id, policy',
  sender_rules: 'subject_id AS id, rules',
  holds: 'id, identity_id, status',
  jobs: 'id, account_id, kind',
  api_keys: 'id, label, scopes, hash, rate_limit, expires_at, revoked_at',
  logins: 'id, account_id, role, email, password, second_factor',
  invitations: 'id, account_id, email, role',
  stopped_accounts: 'account_id AS id',
  signing_keys: 'kid AS id, state',
}

/** What changes who may call at all, or belongs to a person alone. */
const neverDone = /\/(?:account|session|people|reload|backups|certificates|doctor|signing-keys)\b/

/** Calls that who may make them is refused for what the objects of an estate are like, and the codes. */
const refusedWith = new Map([
  ['POST /v1/identities/:id/phone', 'phone_number_exists'],
  // after the first time
  ['POST /v1/domains', 'conflict'],
  ['POST /v1/identities', 'conflict'],
])

/** False for what strangers call, and for calls that do something though they only read. */
function isAsked({ route, path }: RoutePath): boolean {
  return route.scope !== 'public' && !route.effect && !path.endsWith('/doctor')
}

function isAsExpected(expected: Expected, probes: boolean, status: number, code: string | undefined): boolean {
  if (expected !== 'allowed') return status === expected.status && expected.codes.includes(code!)
  return probes ? status === 400 && code === 'unknown_parameter' : status < 300
}

function inWords(expected: Expected, probes: boolean): string {
  if (expected === 'allowed') return probes ? '400 unknown_parameter' : 'an answer'
  return `${expected.status} ${expected.codes.join(' or ')}`
}

function described({ caller, place, mixed }: Cell): string {
  return `by ${JSON.stringify(caller)} for ${mixed ? 'what is own with the last of ' : ''}${place}`
}

/** All numbers of cells, in another order for each seed. */
function shuffled(seed: number, number: number): number {
  const offset = caseSeed(seed, 0) % cellCount
  return (offset + (number % cellCount) * stride) % cellCount
}

/** Has no divisor with the number of cells. */
const stride = coprime(15_485_863)

function coprime(candidate: number): number {
  const divisor = (one: number, other: number): number => (other === 0 ? one : divisor(other, one % other))
  return divisor(candidate, cellCount) === 1 ? candidate : coprime(candidate + 2)
}
