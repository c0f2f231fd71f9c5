import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { Asking } from '../../contract/asking.ts'
import { checks, installed, naming, operationsFor, schemathesis as run } from '../../peers/schemathesis.ts'
import { randomFrom } from '../../support/random.ts'
import { type InhabitedBox, InhabitedHome } from '../box/inhabited-box.ts'
import { faultsOfLog } from '../box/log.ts'
import { World } from '../box/world.ts'
import { type Caller, callers as all } from '../http/cells.ts'
import { Credentials, plantPeople, type People } from '../http/credentials.ts'
import { type Cases, caseSeed, type CaseResult, type Setting, type Trial } from '../trial.ts'

// what a key holds that has all scopes but one differs from call to call, and here one key makes all calls
const callers = all.filter((caller) => !(caller.kind === 'key' && caller.held === 'others'))

/** Random requests for each call. */
const examples = 3

/** After these nothing else would be answered. */
const ending = ['DELETE /v1/session', 'POST /v1/account/stop']

export const schemathesis: Trial = {
  name: 'schemathesis',
  about:
    'Schemathesis makes each call that the OpenAPI document has (`?all=true`), at random, on objects that there are. All calls of a case are made by one ' +
    'caller: nobody, a key with one scope, with all and with none, of the account, of another and of one that is stopped, bound to an identity, revoked, ' +
    'expired or unknown, or the session of a person with each role, ended, or from another site. Nobody, keys with every scope and people of the account ' +
    'make them with values at the bounds of their schemas and beyond them besides. No answer is 500, ' +
    'each has a status, media type, headers and a body that the document names, and what the schemas do not allow is refused; bodies are not compared with their ' +
    'schemas where the caller may not read all that a key with every scope may, as answers are receipts then: the trial http compares those. The box logs no ' +
    'error, and an honest call is still answered. Left out are the two calls after which nothing else is answered (the end of a session, and of ' +
    'all keys), sequences of calls, and that all that the schemas allow is accepted. There is no short form, as `test/peers/schemathesis.test.ts` runs it, with a key and a session, ' +
    'at every commit.',
  goal: { tries: 100_000, unit: 'calls', faults: '0 of 500, 0 schema mismatches' },
  short: 0,
  fetch: async () => void installed(),
  broken: {
    'missing-field-500': {
      what: 'a body without a field that is required is an internal error',
      file: 'src/http/validation.ts',
      find: "if (issue.message === '') throw new Fault('invalid_request', 'The request is not valid.')",
      replace: "if (issue.message === missing) throw new Error('A field is missing.')",
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
      const asking = new Asking(inhabited)
      return { people, operations: await operationsFor(inhabited, asking, asking.spellings) }
    })
    return {
      async run(number) {
        const folder = join(directory, `case-${number}`)
        mkdirSync(folder)
        const box = await home.start()
        try {
          const caller = callers[number % callers.length]!
          return await called(box, caller, { ...more, folder, seed: caseSeed(seed, number) })
        } finally {
          await box.close()
        }
      },
      close: () => world.close(),
    }
  },
}

interface Plan {
  people: People
  operations: string
  folder: string
  seed: number
}

async function called(box: InhabitedBox, caller: Caller, { people, operations, folder, seed }: Plan): Promise<CaseResult> {
  const { own, sibling, foreign } = box
  const credentials = new Credentials(box, people, { own, sibling, foreign, ...people.estates })
  const { key, cookie, headers } = await credentials.of({ name: 'GET /v1/identities', caller })
  const left = new Asking(box).spellings.filter(({ method, path }) => ending.includes(`${method} ${path}`))
  const { status, output, report } = await run({
    url: `${box.box.url}/v1/openapi.json?all=true`,
    directory: folder,
    options: naming('--exclude-name', left),
    settings: {
      seed,
      headers: {
        ...(key ? { Authorization: `Bearer ${key}` } : {}),
        ...(cookie === undefined ? {} : { Cookie: cookie, Origin: box.box.url }),
        ...headers,
      },
      examples,
      isWhole: isUsual(caller),
      checks: checks.filter((name) => name !== 'response_schema_conformance' || readsAll(caller)),
      operations,
    },
  })
  const faults = report.failures.map(({ title, count, operations: found }) => `${title} (${count} times): ${found.join(', ')}`)
  // how to repeat each
  if (status !== 0)
    faults.push(`Schemathesis ended with ${status}: ${output.slice(Math.max(0, output.indexOf(' FAILURES '))).slice(0, 4000)}`)
  const { tested, selected } = report.operations
  if (tested !== selected) faults.push(`${tested} of ${selected} calls were tried`)
  const honest = await box.box.call('GET', `/v1/identities/${own.objects['identities/:id']}`)
  if (honest.status !== 200) faults.push(`an honest call is answered with ${honest.status}`)
  faults.push(...faultsOfLog(box.running).slice(0, 10))
  return { tries: report.test_cases.generated, faults: faults.map((fault) => `${JSON.stringify(caller)}: ${fault}`) }
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
