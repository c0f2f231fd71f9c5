import { isUtf8 } from 'node:buffer'
import {
  type Document,
  isMap,
  isNode,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
  visit,
  type YAMLError,
} from 'yaml'
import { type ConfigProblem, type Place, type Position, spelled } from './problems.ts'

/** The values of a YAML file, and their positions. */
export interface ParsedFile {
  tree: Record<string, unknown>
  /** The position of a setting's name or value; of the nearest group around it when it is not written. */
  place(path: readonly PropertyKey[], part: 'name' | 'value'): Place
  /** True if the path is written with nothing after its colon. */
  blank(path: readonly PropertyKey[]): boolean
}

/** Reads one YAML 1.2 document whose top is a map; an empty one has no values. */
export function readYaml(file: string, bytes: Buffer): ParsedFile | { problems: ConfigProblem[] } {
  const unfit = unfitBytes(bytes)
  if (unfit) return { problems: [{ source: file, ...unfit }] }
  const lines = new LineCounter()
  const text = new TextDecoder().decode(bytes)
  const options = {
    lineCounter: lines,
    prettyErrors: false,
    logLevel: 'error',
    version: '1.2',
    strict: true,
    uniqueKeys: true,
  } as const
  const document = parseDocument(text, options)
  const place = (offset: number): Place => {
    const { line, col } = lines.linePos(offset)
    return { source: file, at: { line: Math.max(line, 1), column: Math.max(col, 1) } }
  }
  const problems = [...faults(document, place), ...aliases(document, place)]
  const top = document.contents
  if (problems.length === 0 && top !== null && !isMap(top)) {
    const message = `must be settings such as "hostname: mx.example.com", not ${kindOf(top)}`
    problems.push({ ...place(top.range?.[0] ?? 0), message })
  }
  if (problems.length > 0) return { problems }
  const tree: Record<string, unknown> = top === null ? {} : document.toJS({ maxAliasCount: 0 })
  return {
    tree,
    place: (path, part) => place(offsetOf(document, path, part)),
    blank: (path) => {
      const node = document.getIn(path, true)
      return node === null || (isScalar(node) && node.value === null && !node.source)
    },
  }
}

function unfitBytes(bytes: Buffer): Omit<ConfigProblem, 'source'> | undefined {
  if (bytes.length > 2 ** 20) return { message: 'is larger than 1 MiB, the limit for a configuration file' }
  if (!isUtf8(bytes)) return { at: position(bytes, firstBadByte(bytes)), message: 'is not UTF-8, must be saved as UTF-8' }
  const nul = bytes.indexOf(0)
  return nul < 0 ? undefined : { at: position(bytes, nul), message: 'contains a NUL byte, must be text' }
}

function position(bytes: Buffer, offset: number): Position {
  const lines = bytes.subarray(0, offset).toString('utf8').split('\n')
  return { line: lines.length, column: (lines.at(-1)?.length ?? 0) + 1 }
}

// All bytes before it are valid: found by bisection.
function firstBadByte(bytes: Buffer): number {
  let [sound, bad] = [0, bytes.length]
  while (bad - sound > 1) {
    const middle = (sound + bad) >> 1
    if (beginsUtf8(bytes.subarray(0, middle))) sound = middle
    else bad = middle
  }
  return sound
}

function beginsUtf8(bytes: Buffer): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true })
    return true
  } catch {
    return false
  }
}

// The library's own sentences may quote the text around an error, and with it a secret.
const sentences: Partial<Record<YAMLError['code'], string>> = {
  BAD_ALIAS: 'is an alias (*name), write the value itself',
  BAD_DQ_ESCAPE: 'has an unknown escape after a backslash, use single quotes',
  BAD_INDENT: 'is indented wrongly, must be aligned with the other names of its section',
  BAD_SCALAR_START: 'starts with a character that needs quotes around the value',
  BLOCK_AS_IMPLICIT_KEY: 'has two colons on one line, put the value in quotes or on lines of its own',
  DUPLICATE_KEY: 'is set twice, must be set once',
  MISSING_CHAR: 'is incomplete: a colon, comma, quote or bracket is missing',
  MULTILINE_IMPLICIT_KEY: 'is incomplete: a colon is missing after the name',
  MULTIPLE_DOCS: 'starts a second YAML document, only one is allowed',
  TAB_AS_INDENT: 'is indented with a tab, use spaces',
  UNEXPECTED_TOKEN: 'has unexpected text before or after it',
  TAG_RESOLVE_FAILED: 'has a tag (!name), must be a plain value',
}

// after a syntax error the rest is guesswork, so only the first is reported; all duplicate names are
function faults(document: Document.Parsed, place: (offset: number) => Place): ConfigProblem[] {
  const found = [...document.errors, ...document.warnings]
  const first = found.find((error) => error.code !== 'DUPLICATE_KEY')
  return found
    .filter((error) => error === first || error.code === 'DUPLICATE_KEY')
    .map((error) => ({
      ...place(error.pos[0]),
      ...(error.code === 'DUPLICATE_KEY' ? { path: pathAt(document, error.pos[0]) } : {}),
      message: sentences[error.code] ?? 'is not valid YAML',
    }))
}

function aliases(document: Document.Parsed, place: (offset: number) => Place): ConfigProblem[] {
  const found: ConfigProblem[] = []
  visit(document, {
    Alias: (_, alias) => {
      found.push({ ...place(alias.range?.[0] ?? 0), message: 'is an alias (*name), must be the value itself' })
      return visit.BREAK
    },
  })
  return found
}

function pathAt(document: Document.Parsed, offset: number): string {
  let found = ''
  visit(document, {
    Pair: (_, pair, ancestors) => {
      if (!isNode(pair.key) || pair.key.range?.[0] !== offset) return undefined
      found = spelled([...ancestors.filter(isPair), pair].map((step) => nameOf(step)))
      return visit.BREAK
    },
  })
  return found
}

function offsetOf(document: Document.Parsed, path: readonly PropertyKey[], part: 'name' | 'value'): number {
  let node: unknown = document.contents
  let offset = 0
  for (const [index, step] of path.entries()) {
    const pair = isMap(node) ? node.items.find((item) => nameOf(item) === step) : undefined
    const next: unknown = pair ? pair.value : isSeq(node) ? node.items[Number(step)] : undefined
    if (pair === undefined && next === undefined) return offset
    const last = index === path.length - 1
    const named = pair !== undefined && (!last || part === 'name' || !isNode(next))
    offset = startOf(named ? pair.key : next) ?? offset
    node = next
  }
  return offset
}

function startOf(node: unknown): number | undefined {
  return isNode(node) ? node.range?.[0] : undefined
}

function nameOf(pair: Pair): string {
  return isScalar(pair.key) ? String(pair.key.value) : String(pair.key)
}

function kindOf(node: Node): string {
  if (isSeq(node)) return 'a list'
  return isScalar(node) && node.value === null ? 'null' : 'a single value'
}
