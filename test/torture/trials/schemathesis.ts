import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { RoutePath } from '../../../src/http/route.ts'
import { Asking, isReadOnly } from '../../contract/asking.ts'
import type { Estate } from '../../contract/estate.ts'
import { rights } from '../../contract/rights-table.ts'
import {
  checks,
  installed,
  type Named,
  naming,
  operationsFor,
  schemathesis as run,
  settledFor,
  type Taken,
  takenFor,
} from '../../peers/schemathesis.ts'
import { randomFrom } from '../../support/random.ts'
import { type InhabitedBox, InhabitedHome } from '../box/inhabited-box.ts'
import { faultsOfLog } from '../box/log.ts'
import { World } from '../box/world.ts'
import { admissionOf, type Caller, callers as all, type Place, reachOf, scopesOf, scopesOfPeople } from '../http/cells.ts'
import { Credentials, plantPeople, type People } from '../http/credentials.ts'
import { type Cases, caseSeed, type CaseResult, type Setting, type Trial } from '../trial.ts'

// what a key holds that has all scopes but one differs from call to call, and here one key makes all calls
const callers = all.filter((caller) => !(caller.kind === 'key' && caller.held === 'others'))

const whoami = 'GET /v1/whoami'

/** Random requests for each call. */
const examples = 3

/** After these nothing else would be answered. */
const ending = new Set(['DELETE /v1/session', 'POST /v1/account/stop'])

/** Calls that are not done here, and why. */
const neverDone: Record<string, string> = {
  'POST /v1/session': 'needs the password',
  'POST /v1/setup': 'needs the token of a link',
  'POST /v1/hold-links/read': 'needs the token of a link',
  'POST /v1/hold-links/decide': 'needs the token of a link',
  'POST /v1/people/invitations/accept': 'needs the token of an invitation',
  'POST /v1/people/invitations': 'needs the password',
  'POST /v1/account/totp': 'needs the password',
  'POST /v1/account/totp/confirm': 'needs a code of an app',
  'DELETE /v1/account/totp': 'needs a second factor that was confirmed',
  'GET /.well-known/mta-sts.txt': 'needs the host of a domain',
  'POST /v1/sms/loopback/inject': 'needs the number of an identity in the body',
  'POST /v1/domains/:id/aliases': 'needs the id of an identity in the body',
}

export const schemathesis: Trial = {
  name: 'schemathesis',
  about:
    'Schemathesis makes each call that the OpenAPI document has (`?all=true`), at random, on objects that there are. All calls of a case are made by one ' +
    'caller: nobody, a key with one scope, with all and with none, of the account, of another and of one that is stopped, bound to an identity, revoked, ' +
    'expired or unknown, or the session of a person with each role, ended, or from another site. Nobody, keys with every scope and people of the account ' +
    'make them with values at the bounds of their schemas and beyond them besides. No answer is 500, ' +
    'each has a status, media type, headers and a body that the document names, and what the schemas do not allow is refused; bodies are not compared with their ' +
    'schemas where the caller may not read all that a key with every scope may, as answers are receipts then: the trial http compares those. The box logs no ' +
    'error, and an honest call is still answered. Before the calls and after them, the box takes the caller for who it is; no call is done that the tables of the ' +
    'trial rights refuse to the caller, and each that a key with every scope or an owner may make, or that only reads and a bound key with every scope, another person or nobody may make, is done at least once, but for those ' +
    'whose password, token, code, host or object in the body no description gives. Where nothing is changed, the objects are of the identity that the caller is bound to, or of its account; ' +
    'else each call has its own, of the account of most callers. Left out are the two calls after which nothing else is answered (the end of a session, and of ' +
    'all keys), sequences of calls, and that all that the schemas allow is accepted. There is no short form, as `test/peers/schemathesis.test.ts` runs it, with a key and a session, ' +
    'at every commit.',
  goal: { tries: 100_000, unit: 'calls', faults: '0 of 500, 0 schema mismatches' },
  short: 0,
  hours: 1,
  fetch: async () => void installed(),
  broken: {
    'missing-field-500': {
      what: 'a body without a field that is required is an internal error',
      file: 'src/http/validation.ts',
      find: "if (issue.message === '') throw new Fault('invalid_request', 'The request is not valid.')",
      replace: "if (issue.message === missing) throw new Error('A field is missing.')",
    },
    'undescribed-type': {
      what: 'refusals have a media type that the document does not name',
      file: 'src/http/api.ts',
      find: 'jsonAnswer(problem.status, errorBody(problem, state.requestId), problemHeaders(error, problem.status, state.challenge)),',
      replace:
        "{ ...jsonAnswer(problem.status, errorBody(problem, state.requestId), problemHeaders(error, problem.status, state.challenge)), type: 'application/problem+json' },",
    },
    'unchecked-parameters': {
      what: 'parameters of a query are not checked',
      file: 'src/http/validation.ts',
      find: 'if (result.success) return result.data\n',
      replace: "if (result.success || word === 'parameter') return result.data ?? value\n",
    },
  },
  async open({ directory, program, seed }: Setting): Promise<Cases> {
    const world = await World.open(directory, program, randomFrom(seed))
    const { home, more } = await InhabitedHome.open(world, async (inhabited) => {
      const people = await plantPeople(inhabited)
      return { people, changed: await settledFor(inhabited, new Asking(inhabited).spellings) }
    })
    const tallies = new Map<string, Tally>()
    return {
      async run(number) {
        const folder = join(directory, `case-${number}`)
        mkdirSync(folder)
        const box = await home.start()
        try {
          const caller = callers[number % callers.length]!
          return await called(box, caller, { ...more, tallies, folder, seed: caseSeed(seed, number) })
        } finally {
          await box.close()
        }
      },
      notes: () => [...tallies].map(([kind, { done, refused }]) => `${kind}: ${done} calls were done, ${refused} refused`),
      close: () => world.close(),
    }
  },
}

/** Calls with a status below 400, and with another. */
interface Tally {
  done: number
  refused: number
}

type Places = Record<Exclude<Place, 'absent'>, Estate>

interface Plan {
  people: People
  changed: Named['changed']
  tallies: Map<string, Tally>
  folder: string
  seed: number
}

async function called(box: InhabitedBox, caller: Caller, plan: Plan): Promise<CaseResult> {
  const { people, changed, tallies, folder, seed } = plan
  const { own, sibling, foreign } = box
  const places: Places = { own, sibling, foreign, ...people.estates }
  const { key, cookie, headers } = await new Credentials(box, people, places).of({ name: whoami, caller })
  const sent = {
    ...(key ? { Authorization: `Bearer ${key}` } : {}),
    ...(cookie === undefined ? {} : { Cookie: cookie, Origin: box.box.url }),
    ...headers,
  }
  const asking = new Asking(box)
  const left = asking.spellings.filter((one) => ending.has(nameOf(one)))
  const operations = await operationsFor(asking, asking.spellings, { own, read: places[placeOf(caller)], changed })
  const before = await takenFor(box.box.url, sent)
  const faults = faultsOfIdentity(before, caller, places)
  const { status, output, report } = await run({
    url: `${box.box.url}/v1/openapi.json?all=true`,
    directory: folder,
    options: naming('--exclude-name', left),
    settings: {
      seed,
      headers: sent,
      examples,
      isWhole: isUsual(caller),
      checks: checks.filter((name) => name !== 'response_schema_conformance' || readsAll(caller)),
      operations,
    },
  })
  faults.push(...report.failures.map(({ title, count, operations: found }) => `${title} (${count} times): ${found.join(', ')}`))
  // how to repeat each
  if (status !== 0)
    faults.push(`Schemathesis ended with ${status}: ${output.slice(Math.max(0, output.indexOf(' FAILURES '))).slice(0, 4000)}`)
  const { tested, selected } = report.operations
  if (tested !== selected) faults.push(`${tested} of ${selected} calls were tried`)
  const after = await takenFor(box.box.url, sent)
  faults.push(...faultsOfIdentity(after, caller, places))
  const answers = await answersBetween(before.request, after.request, box)
  note(tallies, caller, answers)
  const made = asking.spellings.filter((one) => !ending.has(nameOf(one)))
  faults.push(...made.flatMap((spelling) => faultOfCall(spelling, caller, answers) ?? []))
  const honest = await box.box.call('GET', `/v1/identities/${own.objects['identities/:id']}`)
  if (honest.status !== 200) faults.push(`an honest call is answered with ${honest.status}`)
  faults.push(...faultsOfLog(box.running).slice(0, 10))
  return { tries: report.test_cases.generated, faults: faults.map((fault) => `${JSON.stringify(caller)}: ${fault}`) }
}

function nameOf({ method, path }: RoutePath): string {
  return `${method} ${path}`
}

/** Whose objects a caller names where nothing is changed: of the identity that it is bound to, or of its account. */
function placeOf(caller: Caller): Exclude<Place, 'absent'> {
  if (caller.kind === 'nobody') return 'own'
  const bound = caller.kind === 'key' ? caller.bound : undefined
  return bound === undefined || bound === 'absent' ? caller.account : bound
}

/** Nothing, or that a caller is not taken for who it is: what is refused to all would be no fault of a call. */
function faultsOfIdentity({ status, body }: Taken, caller: Caller, places: Places): string[] {
  const expected = admissionOf({ name: whoami, caller, place: 'own', mixed: false })
  if (expected !== 'allowed') {
    const isRefused = status === expected.status && expected.codes.includes(body.error?.code ?? '')
    return isRefused ? [] : [`${whoami} is answered with ${status} ${JSON.stringify(body)}`]
  }
  if (caller.kind === 'nobody') return []
  const held = caller.kind === 'key' ? scopesOf(caller.held, rights.get(whoami)!) : [...scopesOfPeople[caller.role]]
  const isOwn =
    status === 200 &&
    body.account_id === places[caller.account].account &&
    (body.key_id !== null) === (caller.kind === 'key') &&
    body.identity?.id ===
      (caller.kind === 'key' && caller.bound ? places[placeOf(caller)].objects['identities/:id'] : undefined) &&
    body.scopes?.toSorted().join() === held.toSorted().join()
  return isOwn ? [] : [`${whoami} is answered with ${status} ${JSON.stringify(body)}`]
}

/** The statuses of each call that the box logged between two requests. */
async function answersBetween(first: string, last: string, { running }: InhabitedBox): Promise<Map<string, number[]>> {
  const { output } = running.process
  for (let tries = 0; tries < 100 && !output().includes(last); tries += 1) await sleep(50)
  const lines = output().split('\n')
  const [begin, end] = [first, last].map((request) => lines.findIndex((line) => line.includes(request))) as [number, number]
  if (begin === -1 || end === -1) throw new Error(`the box has not logged the requests ${first} and ${last}`)
  const answers = new Map<string, number[]>()
  for (const line of lines.slice(begin + 1, end).filter((one) => one.includes('"msg":"request"'))) {
    const { method, route, status } = JSON.parse(line) as { method: string; route: string; status: number }
    const name = `${method} ${route}`
    answers.set(name, [...(answers.get(name) ?? []), status])
  }
  return answers
}

function note(tallies: Map<string, Tally>, caller: Caller, answers: Map<string, number[]>): void {
  const kind = kindOf(caller)
  const tally = tallies.get(kind) ?? { done: 0, refused: 0 }
  for (const status of [...answers.values()].flat())
    if (status < 400) tally.done += 1
    else tally.refused += 1
  tallies.set(kind, tally)
}

function kindOf(caller: Caller): string {
  if (caller.kind === 'nobody') return 'nobody'
  if (caller.state !== undefined || caller.account === 'stopped')
    return `${caller.kind}s that are not valid, or of a stopped account`
  if (caller.kind === 'session') return 'sessions'
  return caller.held === 'all' ? 'keys with every scope' : 'keys with one scope or none'
}

/** What is wrong with all answers to a call: it was never done where it may be, or was done where it may not. */
function faultOfCall(spelling: RoutePath, caller: Caller, answers: Map<string, number[]>): string | undefined {
  const name = nameOf(spelling)
  const statuses = answers.get(name) ?? []
  const done = statuses.filter((status) => status < 400).length
  const cell = { name, caller, place: placeOf(caller), mixed: false }
  const admission = admissionOf(cell)
  if (admission !== 'allowed') return done === 0 ? undefined : `${name} was done ${done} times`
  // what calls change is not of the identity of a key that is bound to one, and approvers do not change all that they decide by
  const isOwner = caller.kind === 'key' ? caller.bound === undefined : caller.kind === 'session' && caller.role === 'owner'
  const must = isUsual(caller) && (isReadOnly(spelling) || isOwner) && reachOf(cell) === 'allowed' && !(name in neverDone)
  return must && done === 0 ? `${name} was never done: ${[...new Set(statuses)].join(', ')}` : undefined
}

/** A caller of the account, who may call most of what there is, or nobody. */
function isUsual(caller: Caller): boolean {
  if (caller.kind === 'nobody') return true
  if (caller.account !== 'own' || caller.state !== undefined) return false
  return caller.kind === 'session' || (caller.held === 'all' && (caller.bound === undefined || caller.bound === 'own'))
}

function readsAll(caller: Caller): boolean {
  return caller.kind === 'session' || (caller.kind === 'key' && caller.held === 'all')
}
