import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RoutePath } from '../../src/http/route.ts'
import { type Asking, isReadOnly, needsSession, shapeOf } from '../contract/asking.ts'
import type { Estate } from '../contract/estate.ts'
import type { Habitable, Inhabited } from '../contract/inhabited.ts'
import { pythonEnvironment } from './python-environment.ts'

type World = Omit<Inhabited<Habitable>, 'close'>

export const wanted = 'schemathesis==4.32.5'

/** The directory of its programs. Throws where it is not there and cannot be installed. */
export function installed(): string {
  return pythonEnvironment('schemathesis', [wanted])
}

/**
 * Not checked: `unsupported_method`, as the API document has 404 and no 405; `positive_data_acceptance`, as a schema cannot say of all that is refused
 * why (an address that is one, a checksum, one of two fields, an object that there is); the checks of sequences of calls.
 */
export const checks: readonly string[] = [
  'not_a_server_error',
  'status_code_conformance',
  'content_type_conformance',
  'response_headers_conformance',
  'response_schema_conformance',
  'negative_data_rejection',
]

/** Headers of all its calls, and the options that name the calls. */
export interface Caller {
  headers: Record<string, string>
  spellings: RoutePath[]
  options: string[]
}

/** The two callers of a box: a key with every scope, and the session of a person for what no key may do, but to end itself. */
export async function callersOf({ own, box, plantSession }: World, { spellings }: Asking): Promise<Caller[]> {
  const personal = spellings.filter((one) => needsSession(one) && !(one.method === 'DELETE' && one.path === '/v1/session'))
  const others = spellings.filter((one) => !personal.includes(one))
  const session = { Cookie: await plantSession(own.account), Origin: box.url }
  return [
    { headers: session, spellings: personal, options: naming('--include-name', personal) },
    { headers: { Authorization: `Bearer ${own.key}` }, spellings: others, options: naming('--exclude-name', personal) },
  ]
}

/** Who a caller is taken for: how the box answers `GET /v1/whoami` with these headers. */
export interface Taken {
  status: number
  /** The id of the request. */
  request: string
  body: {
    account_id?: string
    key_id?: string | null
    scopes?: string[]
    identity?: { id: string } | null
    error?: { code: string }
  }
}

export async function takenFor(url: string, headers: Record<string, string>): Promise<Taken> {
  const response = await fetch(`${url}/v1/whoami`, { headers })
  const request = response.headers.get('x-request-id') ?? ''
  return { status: response.status, request, body: (await response.json()) as Taken['body'] }
}

/** The options that name calls of the description. */
export function naming(option: '--include-name' | '--exclude-name', spellings: readonly RoutePath[]): string[] {
  return spellings.flatMap((one) => [option, nameOf(one)])
}

export interface Settings {
  seed: number
  headers: Record<string, string>
  /** Random requests for each call. */
  examples: number
  /** Those at the bounds of the description are made besides. */
  isWhole: boolean
  checks: readonly string[]
  /** Of `operationsFor`. */
  operations: string
}

/** What it reports, as far as we read it. */
export interface Report {
  operations: { total: number; selected: number; tested: number; errored: number; skipped: number }
  test_cases: { generated: number }
  failures: { title: string; count: number; operations: string[] }[]
  warnings: Record<string, unknown[]>
}

/** Has it make the calls of the description at `url`, which `options` choose. Its status is 0 if all that was checked holds. */
export async function schemathesis(
  { url, directory, options, settings }: { url: string; directory: string; options: readonly string[]; settings: Settings },
  cancelled: (cancel: () => void) => void = () => {},
): Promise<{ status: number | null; output: string; report: Report }> {
  const [config, file] = [join(directory, 'schemathesis.toml'), join(directory, 'report.json')]
  writeFileSync(config, textOf(settings))
  const words = ['--config-file', config, '--no-color', 'run', url, ...options, '--report-json-path', file]
  const program = spawn(join(installed(), 'schemathesis'), words, { cwd: directory })
  cancelled(() => void program.kill())
  let output = ''
  program.stdout.setEncoding('utf8').on('data', (piece: string) => (output += piece))
  program.stderr.setEncoding('utf8').on('data', (piece: string) => (output += piece))
  const [status] = (await once(program, 'close')) as [number | null]
  return { status, output, report: JSON.parse(readFileSync(file, 'utf8')) as Report }
}

function textOf({ seed, headers, examples, isWhole, checks: checked, operations }: Settings): string {
  return `
seed = ${seed}
continue-on-failure = true
headers = ${tableOf(headers)}
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
${checked.map((name) => `${name}.enabled = true\n`).join('')}
${operations}`
}

/** Whose objects calls name. */
export interface Named {
  own: Estate
  /** By calls that leave everything as it is. */
  read: Estate
  /** By each of the others its own, of the account of `own`. */
  changed: ReadonlyMap<string, Estate>
}

/** Settles an estate for each call that changes any. */
export async function settledFor(world: World, spellings: readonly RoutePath[]): Promise<Named['changed']> {
  const changed = new Map<string, Estate>()
  for (const spelling of spellings.filter((one) => !isReadOnly(one))) {
    const name = `${spelling.method} ${spelling.path}`
    changed.set(name, await world.settle(name))
  }
  return changed
}

/** For each call objects that there are; URLs that are signed are valid for some minutes. */
export async function operationsFor(asking: Asking, spellings: readonly RoutePath[], named: Named): Promise<string> {
  const operations: string[] = []
  for (const spelling of spellings) operations.push(await operation(asking, spelling, named))
  return operations.join('')
}

async function operation(asking: Asking, spelling: RoutePath, { own, read, changed }: Named): Promise<string> {
  const { method, path, route } = spelling
  const fields = shapeOf(route.query)
  const isSigned = 'signature' in fields
  // who calls by a signed URL has no account
  const estate = isSigned ? own : (changed.get(`${method} ${path}`) ?? read)
  const real = asking.path(spelling, estate).split('/')
  const objects = path.split('/').flatMap((part, at) => (part.startsWith(':') ? [[`path.${part.slice(1)}`, real[at]!]] : []))
  const waits = ['timeout', 'wait', 'min_remaining'].filter((name) => name in fields).map((name) => [`query.${name}`, '0'])
  const { query = {} } = isSigned ? (await asking.good(spelling, estate)).question : {}
  const signed = Object.entries(query).map(([name, value]) => [`query.${name}`, value])
  const parameters = Object.fromEntries([...objects, ...waits, ...signed]) as Record<string, string>
  return `[[operations]]\ninclude-name = "${nameOf(spelling)}"\nparameters = ${tableOf(parameters)}\n`
}

/** An inline table of TOML. */
function tableOf(values: Record<string, string>): string {
  const lines = Object.entries(values).map(([name, value]) => `${JSON.stringify(name)} = ${JSON.stringify(value)}`)
  return `{ ${lines.join(', ')} }`
}

/** `GET /v1/identities/{id}` */
function nameOf({ method, path }: RoutePath): string {
  return `${method} ${path.replaceAll(/:(\w+)/g, '{$1}')}`
}
