import type { RoutePath } from '../../src/http/route.ts'
import { type Asking, isReadOnly, needsSession, shapeOf } from '../contract/asking.ts'
import type { Inhabited } from '../contract/inhabited.ts'

/**
 * Not checked: `unsupported_method`, as the API document has 404 and no 405; `positive_data_acceptance`, as a schema cannot say of all that is refused
 * why (an address that is one, a checksum, one of two fields, an object that there is); the checks of sequences of calls.
 */
const checks = [
  'not_a_server_error',
  'status_code_conformance',
  'content_type_conformance',
  'response_headers_conformance',
  'response_schema_conformance',
  'negative_data_rejection',
]

/** Who calls: by a header, what can be called so, and the options that name these calls. */
export interface Caller {
  header: string
  spellings: RoutePath[]
  options: string[]
}

/** The two callers of a box: a key with every scope, and the session of a person for what no key may do, but to end itself. */
export async function callersOf({ own, box, plantSession }: Inhabited, { spellings }: Asking): Promise<Caller[]> {
  const personal = spellings.filter((one) => needsSession(one) && !(one.method === 'DELETE' && one.path === '/v1/session'))
  const others = spellings.filter((one) => !personal.includes(one))
  const named = (option: string): string[] => personal.flatMap((one) => [option, nameOf(one)])
  const session = `Cookie = "${await plantSession(own.account)}", Origin = "${box.url}"`
  return [
    { header: session, spellings: personal, options: named('--include-name') },
    { header: `Authorization = "Bearer ${own.key}"`, spellings: others, options: named('--exclude-name') },
  ]
}

/** The settings with which schemathesis calls a box: for each call objects that there are, and, if it is the whole, each bound of its description. */
export async function settingsFor(
  world: Inhabited,
  asking: Asking,
  caller: Caller,
  { examples, isWhole }: { examples: number; isWhole: boolean },
): Promise<string> {
  const operations: string[] = []
  for (const spelling of caller.spellings) operations.push(await operation(world, asking, spelling))
  return `
seed = 1
continue-on-failure = true
headers = { ${caller.header} }
request-timeout = 60.0
[generation]
max-examples = ${examples}
database = "none"
with-security-parameters = false
[phases]
stateful.enabled = false
coverage.enabled = ${isWhole}
[checks]
enabled = false
${checks.map((name) => `${name}.enabled = true\n`).join('')}
${operations.join('')}`
}

/** A call, with objects of its own if it changes any. */
async function operation(world: Inhabited, asking: Asking, spelling: RoutePath): Promise<string> {
  const { method, path, route } = spelling
  const estate = isReadOnly(spelling) ? world.own : await world.settle(`${method} ${path}`)
  const fields = shapeOf(route.query)
  const real = asking.path(spelling, estate).split('/')
  const objects = path.split('/').flatMap((part, at) => (part.startsWith(':') ? [[`path.${part.slice(1)}`, real[at]]] : []))
  const waits = ['timeout', 'wait', 'min_remaining'].filter((name) => name in fields).map((name) => [`query.${name}`, '0'])
  const { query = {} } = 'signature' in fields ? (await asking.good(spelling, estate)).question : {}
  const signed = Object.entries(query).map(([name, value]) => [`query.${name}`, value])
  const given = [...objects, ...waits, ...signed].map(([name, value]) => `${JSON.stringify(name)} = ${JSON.stringify(value)}`)
  return `[[operations]]\ninclude-name = "${nameOf(spelling)}"\nparameters = { ${given.join(', ')} }\n`
}

/** `GET /v1/identities/{id}` */
function nameOf({ method, path }: RoutePath): string {
  return `${method} ${path.replaceAll(/:(\w+)/g, '{$1}')}`
}
