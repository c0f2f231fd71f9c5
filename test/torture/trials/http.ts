import { scopes } from '../../../src/core/scopes.ts'
import { type RoutePath, routePaths } from '../../../src/http/route.ts'
import { absent, Asking, needsSession, type Question, shapeOf } from '../../contract/asking.ts'
import { checkAnswer, Described, type Told } from '../../contract/described.ts'
import { pick, type Random, randomFrom } from '../../support/random.ts'
import { atOnce } from '../box/at-once.ts'
import { type InhabitedBox, InhabitedHome } from '../box/inhabited-box.ts'
import { faultsOfLog } from '../box/log.ts'
import { World } from '../box/world.ts'
import { type RawAnswer, readAnswers } from '../http/answers.ts'
import { exchanged, type Manner } from '../http/connection.ts'
import { plantPeople } from '../http/credentials.ts'
import { questionOf } from '../http/questions.ts'
import { change, changeHarmlessly, type Draft, octetsOf, type Vocabulary } from '../http/request-grammar.ts'
import { type Cases, caseSeed, type CaseResult, type Setting, type Trial } from '../trial.ts'

/** Calls of one case at least, and connections that are open at once. */
const [callsOfCase, clients] = [300, 4]

/** Bytes of a header that the box reads, less a line for how Node counts them. */
const longestHeader = 16 * 1024 - 100

export const http: Trial = {
  name: 'http',
  about:
    'Each call of the OpenAPI document, changed by a grammar: fields and parameters missing, repeated, unknown, of other types, at bounds and beyond, ids of ' +
    'others, odd Unicode, broken JSON, other media types, encodings and methods, odd and repeated headers, chunks, wrong lengths, requests one behind the ' +
    'other, in pieces, by half, and given up; of five calls two as the document has them but for how they are written, with one key of every scope or the session of an owner; half of the others with these, half with others: of one writing scope alone, of none, for ' +
    'reading, bound, revoked, expired, of another account and of one that is stopped, sessions of each role, and broken ones. No answer is 500, each has a status that the document names for ' +
    'its call and a body of its schema or of the shape of all errors, or the receipt that the document describes where the caller may not read everything, without a stack trace or a secret; each request has one answer; the box logs no error, ' +
    'and an honest call is still answered. Calls that follow the document and not this grammar are those of the trial schemathesis.',
  goal: { tries: 100_000, unit: 'calls', faults: '0 of 500, 0 schema mismatches' },
  short: 300,
  hours: 0.4,
  broken: {
    'broken-escape': {
      what: 'a broken escape in a query is an internal error',
      file: 'src/http/target.ts',
      find: "throw malformed('The URL contains invalid percent-encoding.')",
      replace: "throw new Error('The URL contains invalid percent-encoding.')",
    },
    'undeclared-status': {
      what: 'a body of another media type is a conflict, which the document does not name',
      file: 'src/http/body.ts',
      find: "new Fault('invalid_request', 'A body must be sent as Content-Type",
      replace: "new Fault('conflict', 'A body must be sent as Content-Type",
    },
    'lost-answers': {
      what: 'of requests that come one behind the other only the first is answered',
      file: 'src/http/server/listener.ts',
      find: 'const maxPipelined = 8',
      replace: 'const maxPipelined = 1',
    },
  },
  async open({ directory, program, seed }: Setting): Promise<Cases> {
    const world = await World.open(directory, program, randomFrom(seed))
    const { home, more: script } = await InhabitedHome.open(world, prepare)
    const described = new Described(home.routes)
    const tally: Tally = { compared: 0, unread: 0, refused: 0, unknown: 0, left: 0 }
    return {
      async run(number) {
        const box = await home.start()
        try {
          return await new HttpCase(box, described, script, tally).run(randomFrom(caseSeed(seed, number)))
        } finally {
          await box.close()
        }
      },
      notes: () => [
        `${tally.compared} calls were done and their answers compared with the document, ${tally.unread} were done and have no body that it describes, ` +
          `${tally.refused} were refused; ${tally.unknown} answers were to no call of the document; ${tally.left} calls were given up, which count as no calls`,
      ],
      close: () => world.close(),
    }
  },
}

/** How many answers were of each kind, and how many calls were given up. */
interface Tally {
  compared: number
  /** Downloads, and 304. */
  unread: number
  refused: number
  unknown: number
  left: number
}

/** A call as the document has it. */
interface Good {
  spelling: RoutePath
  path: string
  question: Question
}

type Header = readonly [name: string, value: string]

interface Script {
  calls: Good[]
  vocabulary: Omit<Vocabulary, 'fields' | 'parameters'>
  ownKey: Header
  ownSession: Header
  /** What no answer may have in it. */
  secrets: string[]
  /** Media types of what is no JSON. */
  types: ReadonlySet<string>
}

/** The calls, and the keys and sessions with which they are made. */
async function prepare(inhabited: InhabitedBox): Promise<Script> {
  const { own, sibling, foreign, routes, plantKey, plantSession } = inhabited
  const people = await plantPeople(inhabited)
  const asking = new Asking(inhabited)
  const calls: Good[] = []
  for (const spelling of asking.spellings)
    calls.push({ spelling, path: asking.path(spelling, own), question: await questionOf(asking, spelling, own) })
  // what only providers and the machine itself call: its objects are nobody's
  for (const spelling of routePaths(routes).filter(({ route }) => route.raw || route.local))
    calls.push({ spelling, path: spelling.path.replaceAll(/:\w+/g, absent(own.account)), question: {} })
  const keys = [
    own.key,
    foreign.key,
    await plantKey({ account: own.account, identity: own.objects['identities/:id']! }),
    await plantKey({ account: own.account, scopes: ['identities:read', 'messages:read', 'account:read'] }),
    await plantKey({ account: own.account, expires_at: new Date(0).toISOString() }),
    await plantKey({ account: own.account, revoked_at: new Date(0).toISOString() }),
    people.estates.stopped.key,
    await plantKey({ account: own.account, scopes: [] }),
  ]
  for (const scope of scopes.filter((one) => !one.endsWith(':read')))
    keys.push(await plantKey({ account: own.account, scopes: [scope] }))
  const sessions = [
    await plantSession(own.account),
    await plantSession(foreign.account),
    await plantSession(people.estates.stopped.account),
    await plantSession(own.account, people.approver),
    await plantSession(own.account, people.reader),
  ]
  const broken = [
    '',
    'Bearer',
    `Basic ${btoa('a:b')}`,
    'Bearer x',
    `Bearer ${'x'.repeat(3000)}`,
    `Bearer ${own.key} x`,
    'Bearer \x80',
  ]
  const ids = [own, sibling, foreign].flatMap(({ objects }) => Object.values(objects).filter((id) => id.includes('_')))
  return {
    calls,
    ownKey: ['Authorization', `Bearer ${own.key}`],
    ownSession: ['Cookie', sessions[0]!],
    vocabulary: {
      ids: [...ids, ...ids.slice(0, 5).map(absent)],
      credentials: [
        ...keys.map((key) => ['Authorization', `Bearer ${key}`] as const),
        ...sessions.map((cookie) => ['Cookie', cookie] as const),
        ...broken.map((text) => ['Authorization', text] as const),
        ['Cookie', 'pillarbox=nonsense'],
      ],
    },
    types: new Set(routePaths(routes).flatMap(({ route }) => route.download?.split(';')[0] ?? [])),
    secrets: [...keys, ...sessions.map((cookie) => cookie.slice('pillarbox='.length))],
  }
}

/** Calls that would leave little for the others to do: they come last. */
const ending =
  /^(?:DELETE \/v1\/(?:identities\/:id|session|account\/\w+|domains\/:id|people\/:id)|POST \/v1\/account\/(?:stop|password|totp)|PATCH \/v1\/(?:people|identities)\/:id)$/

/** A request, and what it was made of. */
interface Request {
  draft: Draft
  spelling: RoutePath
  octets: Buffer
}

class HttpCase {
  readonly #box: InhabitedBox
  readonly #described: Described
  readonly #script: Script
  readonly #tally: Tally
  readonly #url: URL

  constructor(box: InhabitedBox, described: Described, script: Script, tally: Tally) {
    this.#box = box
    this.#described = described
    this.#script = script
    this.#tally = tally
    this.#url = new URL(box.running.api)
  }

  async run(random: Random): Promise<CaseResult> {
    const connections: { requests: Request[]; manner: Manner }[] = []
    let tries = 0
    while (tries < callsOfCase) {
      const requests = this.#requests(random)
      const manner = mannerOf(requests, random)
      connections.push({ requests, manner })
      // of what is given up nothing is known
      if (manner.leaves) this.#tally.left += requests.length
      else tries += requests.length
    }
    const ends = ({ requests }: { requests: Request[] }): boolean =>
      requests.some(({ spelling, draft }) => ending.test(`${draft.method} ${spelling.path}`))
    const [first, last] = [connections.filter((one) => !ends(one)), connections.filter(ends)]
    const faults: string[] = []
    const all = async (some: typeof connections): Promise<void> => {
      const found = await atOnce(
        clients,
        some.map(
          ({ requests, manner }) =>
            () =>
              this.#faultsOf(requests, manner),
        ),
      )
      faults.push(...found.flat())
    }
    await all(first)
    const { status } = await this.#box.box.call('GET', `/v1/identities/${this.#box.own.objects['identities/:id']}`)
    if (status !== 200) faults.push(`an honest call is answered with ${status}`)
    await all(last)
    const { status: health } = await this.#box.box.call('GET', '/readyz', undefined, { key: null })
    if (health !== 200) faults.push(`the box is not ready: ${health}`)
    return { tries, faults: [...faults, ...faultsOfLog(this.#box.running)] }
  }

  /** What is sent over one connection: behind a request after which nothing may be read there is none. */
  #requests(random: Random): Request[] {
    const requests: Request[] = []
    const count = random(3) === 0 ? 1 + random(5) : 1
    while (requests.length < count) {
      const request = this.#request(random)
      requests.push(request)
      if (request.draft.last) break
    }
    return requests
  }

  #request(random: Random): Request {
    const { calls, vocabulary, ownKey, ownSession } = this.#script
    const { spelling, path, question } = pick(calls, random)
    const { query, body: schema } = spelling.route
    const parameters = Object.keys(shapeOf(query))
    const given = { ...question.query, ...('timeout' in shapeOf(query) ? { timeout: '0' } : {}) }
    const usual = needsSession(spelling) ? ownSession : ownKey
    const isHarmless = random(5) < 2
    const draft: Draft = {
      method: spelling.method,
      path,
      query: new URLSearchParams(given).toString(),
      headers: [
        ...('Host' in (question.headers ?? {}) ? [] : [['Host', this.#url.host] as [string, string]]),
        [...(!isHarmless && random(2) === 0 ? pick(vocabulary.credentials, random) : usual)],
        ...(random(2) === 0 ? [['Origin', this.#url.origin] as [string, string]] : []),
        ...Object.entries(question.headers ?? {}),
      ],
      body: undefined,
      framing: 'length',
      version: 'HTTP/1.1',
      changes: [],
      known: true,
      last: false,
      answers: { least: 1, most: 1 },
    }
    if (question.body !== undefined) {
      draft.body = Buffer.from(typeof question.body === 'string' ? question.body : JSON.stringify(question.body))
      if (!('Content-Type' in (question.headers ?? {}))) draft.headers.push(['Content-Type', 'application/json'])
    }
    // a wait is for another trial
    const waits = new Set(['timeout', 'wait', 'min_remaining'])
    if (isHarmless) changeHarmlessly(draft, random)
    else
      change(draft, random, {
        ...vocabulary,
        fields: Object.keys(shapeOf(schema)),
        parameters: parameters.filter((name) => !waits.has(name)),
      })
    const octets = octetsOf(draft)
    // two changes may make a header together that is refused, after which the connection is closed
    if (octets.indexOf('\r\n\r\n') > longestHeader) draft.last = true
    return { draft, spelling, octets }
  }

  async #faultsOf(requests: Request[], manner: Manner): Promise<string[]> {
    const methods = requests.map(({ draft }) => draft.method)
    const { answers: bounds, last: isBroken } = requests.at(-1)!.draft
    const isClean = !isBroken
    const least = requests.length - 1 + bounds.least
    // what is all well is followed by one more call, whose answer is the last
    const octets = Buffer.concat([...requests.map((request) => request.octets), ...(isClean ? [this.#last()] : [])])
    const isEnough = (received: Buffer): boolean => !isClean && countOf(received, methods) >= least
    const faults: string[] = []
    try {
      const received = await exchanged(this.#url, octets, manner, isEnough)
      // who gives up has no answer, or a part of it
      if (manner.leaves) return []
      const answers = readAnswers(received, methods)
      const last = isClean ? answers.pop() : undefined
      if (isClean && last?.status !== 200) faults.push(`the call behind is answered with ${last?.status}`)
      if (answers.length < least || answers.length > requests.length - 1 + bounds.most)
        faults.push(`${answers.length} answers to ${requests.length} requests`)
      for (const [index, answer] of answers.entries()) {
        const request = requests[index]
        faults.push(...this.#faultsOfAnswer(answer, request?.draft.last ? undefined : request))
      }
    } catch (error) {
      faults.push((error as Error).message)
    }
    const what = `${requests.map(inWords).join('\n')}${manner.leaves ? `\n(gives up after ${manner.leaves.after})` : ''}`
    return faults.map((fault) => `${fault}\n${what}`)
  }

  /** True if a call is made with one key of every scope or the session of an owner, and nothing besides. */
  #readsAll({ headers }: Draft): boolean {
    const given = headers.filter(([name]) => /^(?:authorization|cookie)$/i.test(name))
    const { ownKey, ownSession } = this.#script
    return given.length === 1 && [ownKey, ownSession].some(([, value]) => value === given[0]![1])
  }

  #last(): Buffer {
    const lines = ['GET /v1/whoami HTTP/1.1', `Host: ${this.#url.host}`, this.#script.ownKey.join(': '), 'Connection: close']
    return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`)
  }

  /** What is wrong with an answer; without a request, where it may be to what was made of a broken one. */
  #faultsOfAnswer({ status, headers, body }: RawAnswer, request: Request | undefined): string[] {
    const text = body.toString()
    const told: Told = { status, headers, text, size: body.length, json: jsonOf(headers, text) }
    const faults: string[] = []
    if (status >= 500) faults.push(`an answer of ${status}: ${text.slice(0, 300)}`)
    if (status >= 400 && /\n\s+at |node:|\/src\/|\.ts:\d|sqlite|SELECT |INSERT /i.test(text))
      faults.push(`an answer that tells of the program: ${text.slice(0, 300)}`)
    const secret = this.#script.secrets.find((one) => text.includes(one))
    if (secret !== undefined) faults.push(`an answer has a key or session in it: ${text.slice(0, 300)}`)
    const { method = '', known = false } = request?.draft ?? {}
    this.#tally[known ? kindOf(told, request!.spelling) : 'unknown'] += 1
    const isHead = method === 'HEAD' || (status >= 400 && body.length === 0)
    try {
      // which the client has asked for (RFC 9110 13.1), whatever is called
      if (status === 304 && request?.draft.headers.some(([name]) => name.startsWith('If-'))) return faults
      if (request === undefined || !known) {
        if (status >= 400) checkAnswer(told, { method: isHead ? 'HEAD' : method })
        else faults.push(...this.#faultsOfUnknown(told, method))
      } else {
        this.#described.check(request.spelling, method, told, !this.#readsAll(request.draft))
        if (!this.#described.names(request.spelling, status))
          faults.push(`an answer that the document does not name: ${status} ${text.slice(0, 200)}`)
      }
    } catch (error) {
      faults.push(`${status} ${(error as Error).message.slice(0, 600)} ${text.slice(0, 200)}`)
    }
    return faults
  }

  /** What is wrong with an answer below 400 to a request that no call of the document is known for. */
  #faultsOfUnknown({ headers, text, json }: Told, method: string): string[] {
    const type = headers.get('content-type')?.split(';')[0]
    const isRead = method === 'HEAD' || text === ''
    const isKnown = isRead || (type === 'application/json' ? json !== undefined : this.#script.types.has(type ?? ''))
    return [
      ...(/^req_[0-9a-z]{26}$/.test(headers.get('x-request-id') ?? '') ? [] : ['an answer without the id of its request']),
      ...(isKnown ? [] : [`an answer of ${type} that the API does not have: ${text.slice(0, 200)}`]),
    ]
  }
}

function kindOf({ status }: Told, { route }: RoutePath): keyof Tally {
  if (status >= 400) return 'refused'
  return status === 304 || route.download !== undefined ? 'unread' : 'compared'
}

function mannerOf(requests: readonly Request[], random: Random): Manner {
  const length = requests.reduce((sum, { octets }) => sum + octets.length, 0)
  const leaves = random(12) === 0 ? { after: random(length), reset: random(2) === 0 } : undefined
  return { pieces: random(4) === 0 ? 1 + random(20) : 1, leaves }
}

/** How many answers have come as a whole. */
function countOf(received: Buffer, methods: readonly string[]): number {
  try {
    return readAnswers(received, methods).length
  } catch {
    return 0
  }
}

function jsonOf(headers: Headers, text: string): unknown {
  if (headers.get('content-type')?.startsWith('application/json') !== true || text === '') return undefined
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

function inWords({ draft, octets }: Request): string {
  return `  (${draft.changes.join(', ')}) ${JSON.stringify(octets.toString('latin1').slice(0, 800)).replaceAll(/pbx_\w+/g, 'pbx_…')}`
}
