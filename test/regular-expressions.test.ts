import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type AST, RegExpParser, visitRegExpAST } from '@eslint-community/regexpp'
import { getConsumedChars, isPotentiallyEmpty, toUnicodeSet } from 'regexp-ast-analysis'
import { analyse } from 'scslre'
import { parseSync, Visitor } from 'vite'
import { expect, test } from 'vitest'
import { announcers } from '../src/message/codes.ts'

/**
 * No regular expression takes time in more than proportion to its text, but for those whose text is short: a stranger's long text would stop
 * the main thread, or keep a worker. What is told here is told from the expression alone:
 *
 * - `backtracks`: two repetitions can share the same characters in many ways (`/^\s*(.*?)\s*$/`);
 * - `restarts`: it is tried at each character of a text, and what it repeats reads on from each before it fails (`/\s+$/`, `/<b[^>]*>/`).
 *
 * Better than an exception is: `trimEnd`, `core/text`, `indexOf`, a repetition after which nothing can fail, or a text cut to a length.
 */
const short: [file: string, beginning: string, why: string][] = [
  [
    'message/codes.ts',
    String.raw`(?<![\w.,/@+=&%€$£¥₹©~-]|\d:)(?:[A-Z]{1,2}-)?\d`,
    'a line of at most 5,000 characters; begins once in a row of digits',
  ],
  ['message/codes.ts', String.raw`^[\s)\]"'»”]{0,3}[:：\-–—]|`, 'at most 50 characters: gap.length is asked first'],
  ['message/codes.ts', String.raw`(?:(?:(?<!\p{L})(?:order|invoice`, 'notBefore: the last 60 characters before a number'],
  ['message/codes.ts', String.raw`(?:[:：=(（[【「—-]|`, 'connector: at most 90 characters, gap.length is asked first'],
  ['message/links.ts', String.raw`^\W*(?:(?:click|tap|press)?`, 'the text of a link, which mail/anchors cuts to 200 characters'],
  ['message/links.ts', 'unsubscribe|opt[- ]?out', 'the text of a link, or at most 160 characters before it'],
  ['message/links.ts', String.raw`(?<=[.!?。！？])\s+`, 'at most 160 characters before a link'],
  ['message/documents/workbook.ts', String.raw`"[^"]*"|`, 'the format of a number, cut to 255 characters'],
  ['message/reports/report.ts', String.raw`^[^!]+!.+!.*`, 'a file name, cut to 300 characters'],
  ['sms/opt-outs.ts', String.raw`^["'“”«»]+`, '100 characters, of which NFKC makes at most 1,800'],
]

/** Expressions that are made while the box runs: how their argument begins, and what comes of it, or one like it. */
const made: [file: string, argument: string, like: RegExp][] = [
  ['commands/domain.ts', '`.{1,', /.{1,60}/g],
  ['core/ids.ts', '`^${prefix}_', /^ident_[0-7][0-9a-hjkmnp-tv-z]{25}$/],
  ['config/values.ts', '`^(', /^(\d{1,16}(?:\.\d{1,6})?)(?: ?(ms|s|min))?$/],
  ['domains/judge.ts', 'String.raw`;', /;\s*id\s*=\s*abc\s*(?:;|$)/],
  // `token` and `parameter` written out
  [
    'message/mime/content-type.ts',
    'String.raw`^(',
    /^([\w!#$%&'+.^{|}~-]+\/[\w!#$%&'+.^{|}~-]+)((?:\s*;\s*([\w!#$%&'+.^{|}~-]+)=(?:([\w!#$%&'+.^{|}~-][\w!#$%&'+.^{|}~=/:-]*)|"((?:(?!=\?)[ !#-'*-[\]-~])*)"))*)\s*(?:;\s*)?$/,
  ],
  [
    'message/mime/content-type.ts',
    'String.raw`^(',
    /^([\w!#$%&'+.^{|}~-]+)((?:\s*;\s*([\w!#$%&'+.^{|}~-]+)=(?:([\w!#$%&'+.^{|}~-][\w!#$%&'+.^{|}~=/:-]*)|"((?:(?!=\?)[ !#-'*-[\]-~])*)"))*)\s*(?:;\s*)?$/,
  ],
  [
    'message/mime/content-type.ts',
    'parameter',
    /\s*;\s*([\w!#$%&'+.^{|}~-]+)=(?:([\w!#$%&'+.^{|}~-][\w!#$%&'+.^{|}~=/:-]*)|"((?:(?!=\?)[ !#-'*-[\]-~])*)")/gy,
  ],
  ['message/codes.ts', '[', announcers],
  ['smtp/paths.ts', 'String.raw`^', /^[\w!#$%&'*+/=?^`{|}~\u{80}-\u{10ffff}-]+(?:\.[\w!#$%&'*+/=?^`{|}~\u{80}-\u{10ffff}-]+)*$/u],
  [
    'smtp/paths.ts',
    'String.raw`^',
    /^[\w!#$%&'*+/=?^`{|}~\u{80}-\u{10ffff}-]+(?:\.[\w!#$%&'*+/=?^`{|}~\u{80}-\u{10ffff}-]+)*@[^@]+$/u,
  ],
  ['message/reply-text.ts', '`^[', /^[\s*]*(?:from|sent|date)\s?\**[:：]/iu],
  ['mail/search/full-text.ts', 'cjk.source', /[\u2E80-\u9FFF\u{20000}-\u{3FFFF}]/gu],
  ['core/text.ts', 'directionControls', /[\u202A-\u202E\u2066-\u2069]/gu],
  // `escape` written out
  [
    'realtime/pattern.ts',
    'String.raw`',
    /\[:\^?\w+:\]|\\[pP](?:\{[^}]*\}|[^])|\\[dswDSW]|(\\(?:x\{[^}]*\}|[^])|[^\\])(?:-(\\(?:x\{[^}]*\}|[^])|[^\]\\]))?/uy,
  ],
]

const root = fileURLToPath(new URL('../src', import.meta.url))
const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter((name) => /\.tsx?$/.test(name))
  .toSorted()
const found = files.flatMap((file) => expressionsIn(file))

interface Expression {
  file: string
  line: number
  /** Of a literal. */
  literal?: { source: string; flags: string }
  /** Of one that is made: what it is made of. */
  argument?: string
}

test('every regular expression takes time in proportion to its text, or has a text that is short', () => {
  const slow = found.flatMap(({ file, line, literal }) => {
    if (!literal) return []
    const flaws = flawsOf(literal)
    const isShort = short.some((one) => one[0] === file && literal.source.startsWith(one[1]))
    return flaws.length === 0 || isShort ? [] : [`${file}:${line} ${flaws.join(', ')}: /${literal.source}/${literal.flags}`]
  })
  expect(slow).toEqual([])
})

test('every exception is needed', () => {
  const needless = short.filter(
    ([file, beginning]) =>
      !found.some((one) => one.file === file && one.literal?.source.startsWith(beginning) && flawsOf(one.literal).length > 0),
  )
  expect(needless).toEqual([])
})

test('every regular expression that is made while the box runs is in the table, and takes time in proportion to its text', () => {
  const written = found.filter(({ argument }) => argument !== undefined)
  const isListed = (one: Expression, [file, beginning]: (typeof made)[number]): boolean =>
    one.file === file && one.argument!.startsWith(beginning)
  expect(written.filter((one) => !made.some((listed) => isListed(one, listed)))).toEqual([])
  expect(made.filter((listed) => !written.some((one) => isListed(one, listed)))).toEqual([])
  expect(written).toHaveLength(made.length)
  expect(made.map(([file, , like]) => [file, ...flawsOf(like)]).filter((one) => one.length > 1)).toEqual([])
})

test.for([
  [/\s+$/, 'restarts'],
  [/^\s*(.*?)\s*<([^<>]*)>\s*$/su, 'backtracks'],
  [/<body\b[^>]*>/gi, 'restarts'],
  [/(?:\r\n)+$/, 'restarts'],
  [/^Received:[^\n]*\n/im, 'restarts'],
  [/(a|b)*c$/, 'restarts'],
  [/a(?=.*z)/, 'restarts'],
  [/(?<=a.*)z/, 'restarts'],
] as const)('%s is told', ([expression, flaw]) => {
  expect(flawsOf(expression)).toContain(flaw)
})

test.for([/^a+b/, /a+/, /<[^<>]*>/, /^Received:.*\r?\n/im, /<body\b[^>]*>?/gi, /;\s*p\s*=/, /x{1,300}y/])(
  '%s is not',
  (expression) => {
    expect(flawsOf(expression)).toEqual([])
  },
)

function expressionsIn(file: string): Expression[] {
  const text = readFileSync(join(root, file), 'utf8')
  const { program, errors } = parseSync(file, text)
  if (errors.length > 0) throw new Error(`${file} cannot be read: ${errors[0]!.message}`)
  const expressions: Expression[] = []
  const lineOf = (start: number): number => text.slice(0, start).split('\n').length
  const note = (callee: { type: string; name?: string }, start: number, [first]: { start: number; end: number }[]): void => {
    if (callee.name === 'RegExp' && first) {
      expressions.push({ file, line: lineOf(start), argument: text.slice(first.start, first.end).replaceAll(/\s+/g, ' ') })
    }
  }
  new Visitor({
    Literal(node) {
      if (!('regex' in node)) return
      expressions.push({ file, line: lineOf(node.start), literal: { source: node.regex.pattern, flags: node.regex.flags } })
    },
    NewExpression: ({ callee, start, arguments: given }) => note(callee as never, start, given),
    CallExpression: ({ callee, start, arguments: given }) => note(callee as never, start, given),
  }).visit(program)
  return expressions
}

function flawsOf({ source, flags }: { source: string; flags: string }): string[] {
  const flaws = new Set<string>()
  for (const { type } of analyse({ source, flags }).reports) flaws.add(type === 'Move' ? 'restarts' : 'backtracks')
  const literal = new RegExpParser().parseLiteral(`/${source}/${flags}`)
  visitRegExpAST(literal, {
    onQuantifierEnter: (repetition) => {
      if (restarts(repetition, literal.flags)) flaws.add('restarts')
    },
  })
  return [...flaws]
}

/**
 * scslre tells of repeated single characters alone. Here: whether a repetition without end can read over all that leads to it, so that each of
 * many beginnings in a row (`<body <body <body `) reads to the end of the row, and fails there.
 */
function restarts(repetition: AST.Quantifier, flags: AST.Flags): boolean {
  if (repetition.max !== Infinity || flags.sticky) return false
  const repeated = getConsumedChars(repetition.element, flags).chars
  const isBetween = (element: AST.Element): boolean => {
    switch (element.type) {
      case 'Assertion':
        return element.kind === 'start' && (!flags.multiline || repeated.isDisjointWith(lineEnds(flags)))
      case 'Character':
      case 'CharacterSet':
      case 'CharacterClass':
        return toUnicodeSet(element, flags).chars.isDisjointWith(repeated)
      case 'Quantifier':
        return element.min > 0 && isBetween(element.element)
      case 'Group':
      case 'CapturingGroup':
        return element.alternatives.every(({ elements }) => elements.some(isBetween))
      default:
        return false
    }
  }
  let canFail = false
  for (let node = repetition as AST.Node | null; node; node = node.parent) {
    // what looks back reads the other way
    if (node.type === 'Assertion' && node.kind === 'lookbehind') return true
    if (node.parent?.type !== 'Alternative') continue
    const place = node.parent.elements.indexOf(node as AST.Element)
    if (node.parent.elements.slice(0, place).some(isBetween)) return false
    canFail ||= node.parent.elements.slice(place + 1).some((element) => !isPotentiallyEmpty(element, flags))
  }
  return canFail
}

function lineEnds(flags: AST.Flags) {
  const { pattern } = new RegExpParser().parseLiteral(String.raw`/[\n\r\u2028\u2029]/`)
  return getConsumedChars(pattern, flags).chars
}
