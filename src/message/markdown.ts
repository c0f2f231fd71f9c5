import { compile, type DomNode, type FormatCallback, type FormatOptions, type HtmlToTextOptions } from 'html-to-text'
import { oneLine } from '../core/text.ts'
import { hiddenElements, isHiddenStyle } from './markup.ts'

/** Characters of HTML that are converted to Markdown; the rest is left out. */
export const htmlLimit = 1024 * 1024

// The HTML parser takes quadratic time in the depth, and a few microseconds for each element; browsers flatten beyond 512.
const maxDepth = 512
const maxTags = 100_000

/** HTML as Markdown, or without its tags when it has too many or nests too deep, which `linksOf` counts, or the converter fails on one. */
export function htmlText(html: string, { depth, tags }: { depth: number; tags: number }): string {
  if (depth > maxDepth || tags > maxTags) return strippedOf(html)
  try {
    return markdownOf(html)
  } catch {
    // on elements such as <constructor>
    return strippedOf(html)
  }
}

/**
 * HTML as Markdown: headings, lists, `[text](url)`, a row of a data table as one line with ` | ` between its cells. Images, styles and hidden
 * content (preheaders) are left out. The caller must ensure that elements nest at most 1000 deep: the underlying parser takes quadratic time in
 * the depth.
 */
export function markdownOf(html: string): string {
  const read = html.length > htmlLimit ? html.slice(0, htmlLimit) : html
  const text = convert(read, { nesting: Math.min(maxNesting, Math.floor(maxMarks / linesOf(read))) })
  return text
    .replace(/[\u034f\u00ad\u200b\u2060\ufeff]+/g, '')
    .replace(/\u00a0/g, ' ')
    .split('\n')
    .map((line) => (line.includes('\u200c') || line.includes('\u200d') ? withoutPadding(line) : line))
    .map((line) => (invisible.test(line) ? '' : line.replace(/^ (?=\d{1,4}\. )/, '').trimEnd()))
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim()
}

/** HTML with its tags removed and nothing else, for HTML that nests too deep for `markdownOf`. */
export function strippedOf(html: string): string {
  return html
    .slice(0, htmlLimit)
    .replace(/<[^<>]*>/g, ' ')
    .replace(/[^\S\n]+/g, ' ')
    .replace(/ ?\n[ \n]*/g, '\n')
    .trim()
}

/** The lines that HTML can have as text, at most: one for each line feed and each tag. */
function linesOf(html: string): number {
  let lines = 1
  for (const mark of ['\n', '<']) for (let at = html.indexOf(mark); at !== -1; at = html.indexOf(mark, at + 1)) lines += 1
  return lines
}

// A zero-width joiner beside a space joins nothing; preheaders are padded with them.
function withoutPadding(line: string): string {
  return line.replace(/[\u200c\u200d](?=[\s\u200c\u200d]|$)|(?<=^|\s)[\u200c\u200d]/g, '').replace(/[ \u2007]{2,}/g, ' ')
}

// The padding of a preheader: only joiners and spaces.
const invisible = /^[\s\u200c-\u200f\u2007\u2800\u3164]+$/

const headings = new Set(['h1', 'h2', 'h3', 'h4', 'h5', 'h6'])

/** Characters that are read of an element to decide whether it is the text of a link or of a cell. */
const maxTextRead = 400

/** Levels of nested quotations and lists that are marked: each level adds a mark to every line inside. */
const maxNesting = 8

/** Lines times levels that are marked; with more lines fewer levels are. */
const maxMarks = 400_000
const nestingElements = new Set(['blockquote', 'ul', 'ol'])

const blockNames = new Set(
  'address article aside blockquote br center div dl fieldset footer form h1 h2 h3 h4 h5 h6 header hr li main nav ol p pre section table ul'.split(
    ' ',
  ),
)

const heading: FormatCallback = (element, walk, builder) => {
  // of nested headings only the outermost counts: each level would process all the text inside
  if (countAround(element, headings) > 0) {
    walk(element.children, builder)
    return
  }
  const level = Number(element.name?.slice(1))
  builder.openBlock({ leadingLineBreaks: 2 })
  walk(element.children, builder)
  builder.closeBlock({
    trailingLineBreaks: 2,
    blockTransform: (text) => (text.trim() === '' ? '' : `${'#'.repeat(level)} ${text.trim().replace(/\s+/g, ' ')}`),
  })
}

const anchor: FormatCallback = (element, walk, builder) => {
  const url = urlOf(element)
  const text = url === undefined ? '' : visibleText(element)
  const label = text.trim()
  if (url === undefined || label.length > 200) {
    walk(element.children, builder)
    if (url !== undefined) builder.addInline(` [link](${url})`, { noWordTransform: true })
    return
  }
  const linkText = label === '' ? altTextOf(element, 0) : label
  if (linkText === '') {
    if (hasImage(element, 0)) builder.addInline(` [link](${url}) `, { noWordTransform: true })
    return
  }
  // The spaces at its ends separate the link from the surrounding text.
  const before = /^\s/.test(text) ? ' ' : ''
  const after = /\s$/.test(text) ? ' ' : ''
  const same = linkText === url || `https://${linkText}` === url || `http://${linkText}` === url
  builder.addInline(`${before}${same ? url : `[${linkText.replace(/[[\]]/g, '')}](${url})`}${after}`, { noWordTransform: true })
}

const row: FormatCallback = (element, walk, builder) => {
  const cells = element.children.filter(
    (child) => (child.name === 'td' || child.name === 'th') && visibleText(child).trim() !== '',
  )
  const isData = cells.length > 1 && cells.every((cell) => !hasBlocks(cell, 0) && visibleText(cell).length <= 200)
  builder.openBlock({ leadingLineBreaks: 1 })
  if (isData) {
    for (const [index, cell] of cells.entries()) {
      if (index > 0) builder.addInline(' | ')
      walk(cell.children, builder)
    }
  } else {
    walk(element.children, builder)
  }
  builder.closeBlock({ trailingLineBreaks: 1 })
}

const rule: FormatCallback = (_element, _walk, builder) => {
  builder.openBlock({ leadingLineBreaks: 2 })
  builder.addInline('---')
  builder.closeBlock({ trailingLineBreaks: 2 })
}

const orderedList = limitedNesting('orderedList')

/** A list begins with a number that a page would show: `sanitize.ts` keeps no other. */
const numbers: FormatCallback = (element, walk, builder, format) => {
  if (!/^\d{1,4}$/.test(element.attribs['start'] ?? '')) delete element.attribs['start']
  orderedList(element, walk, builder, format)
}

/** Struck out as on a page. */
const struck: FormatCallback = (element, walk, builder) => {
  const isEmpty = visibleText(element).trim() === ''
  if (!isEmpty) builder.addLiteral('~~')
  walk(element.children, builder)
  if (!isEmpty) builder.addLiteral('~~')
}

/** Skips an element that its style hides; any other is formatted as if it had no style. */
const styled: FormatCallback = (element, walk, builder) => {
  if (isHiddenStyle(element.attribs['style'] ?? '')) return
  delete element.attribs['style']
  const { format, options: chosen } = (builder as unknown as Picking).picker.pick1(element)
  builder.options.formatters?.[format]?.(element, walk, builder, chosen ?? {})
}

/** How html-to-text chooses the format of an element. */
interface Picking {
  picker: { pick1(element: DomNode): { format: string; options?: FormatOptions } }
}

const single = { leadingLineBreaks: 1, trailingLineBreaks: 1 }

const options: HtmlToTextOptions = {
  wordwrap: false,
  // what is outside of a body is displayed too
  baseElements: { selectors: [] },
  limits: { maxInputLength: htmlLimit, maxDepth: 100, maxChildNodes: 20_000, ellipsis: '' },
  formatters: {
    markdownStyled: styled,
    markdownHeading: heading,
    markdownAnchor: anchor,
    markdownRow: row,
    markdownRule: rule,
    markdownBullets: limitedNesting('unorderedList'),
    markdownNumbers: numbers,
    markdownStruck: struck,
    markdownQuotation: limitedNesting('blockquote'),
  },
  selectors: [
    ...[...headings].map((selector) => ({ selector, format: 'markdownHeading' })),
    ...['td', 'th', 'center', 'dt', 'dd', 'address', 'fieldset'].map((selector) => ({
      selector,
      format: 'block',
      options: single,
    })),
    { selector: '[style]', format: 'markdownStyled' },
    ...['img', '[hidden]', ...hiddenElements].map((selector) => ({ selector, format: 'skip' })),
    { selector: 'a', format: 'markdownAnchor' },
    { selector: 'table', format: 'block', options: single },
    { selector: 'tr', format: 'markdownRow' },
    { selector: 'hr', format: 'markdownRule' },
    ...['s', 'strike', 'del'].map((selector) => ({ selector, format: 'markdownStruck' })),
    { selector: 'ul', format: 'markdownBullets', options: { itemPrefix: '- ', leadingLineBreaks: 2, trailingLineBreaks: 2 } },
    { selector: 'ol', format: 'markdownNumbers' },
    { selector: 'blockquote', format: 'markdownQuotation' },
    { selector: 'li', format: 'block', options: single },
  ],
}

/** What a conversion passes to the formatters; the library's types do not know it. */
interface Metadata {
  /** Levels of nested quotations and lists that are marked. */
  nesting: number
}

type Convert = (html: string, metadata: Metadata) => string

let compiled: Convert | undefined

function convert(html: string, metadata: Metadata): string {
  // not when this file is loaded: it takes longer than to load it, and most processes convert nothing
  compiled ??= compile(options) as Convert
  return compiled(html, metadata)
}

function urlOf(element: DomNode): string | undefined {
  const href = (element.attribs['href'] ?? '').replace(/[\t\r\n]/g, '').trim()
  if (!/^https?:\/\//i.test(href) || href.length > 8192) return undefined
  return href.replaceAll(' ', '%20').replaceAll('(', '%28').replaceAll(')', '%29')
}

/** The number of ancestors of an element with one of these names. */
function countAround(element: DomNode, names: ReadonlySet<string>): number {
  let count = 0
  for (let node = element.parent; node; node = node.parent) if (names.has(node.name ?? '')) count += 1
  return count
}

/** The library's formatter of this name, up to the maximum nesting of such elements. */
function limitedNesting(name: string): FormatCallback {
  return (element, walk, builder, format) => {
    const usual = builder.options.formatters?.[name]
    const { nesting } = (builder as unknown as { metadata: Metadata }).metadata
    if (usual && countAround(element, nestingElements) < nesting) return usual(element, walk, builder, format)
    builder.openBlock({ leadingLineBreaks: 1 })
    walk(element.children, builder)
    builder.closeBlock({ trailingLineBreaks: 1 })
  }
}

/** The visible text of elements, cached: nested elements would otherwise be read once for each level. */
const textCache = new WeakMap<DomNode, string>()

/** The visible text of an element, white space folded but not trimmed; about the first 400 characters. */
function visibleText(element: DomNode): string {
  const before = textCache.get(element)
  if (before !== undefined) return before
  let text = ''
  if (!isHidden(element)) {
    for (const child of element.children ?? []) {
      const words = child.type === 'text' ? (child.data ?? '').replace(/\s+/g, ' ').slice(0, maxTextRead) : visibleText(child)
      text = joinSpaces(text, isBlock(child) ? joinSpaces(joinSpaces(' ', words), ' ') : words)
      if (text.length >= maxTextRead) break
    }
  }
  textCache.set(element, text)
  return text
}

function joinSpaces(before: string, after: string): string {
  return before.endsWith(' ') && after.startsWith(' ') ? before + after.slice(1) : before + after
}

function isBlock(node: DomNode): boolean {
  return node.name !== undefined && blockNames.has(node.name)
}

function isHidden({ name, attribs }: DomNode): boolean {
  if (name !== undefined && hiddenElements.has(name)) return true
  return attribs !== undefined && (attribs['hidden'] !== undefined || isHiddenStyle(attribs['style'] ?? ''))
}

function altTextOf(node: DomNode, depth: number): string {
  if (node.name === 'img' && !isHidden(node)) return oneLine(node.attribs['alt'] ?? '').slice(0, 200)
  if (depth > 5 || isHidden(node)) return ''
  for (const child of (node.children ?? []).slice(0, 20)) {
    const found = altTextOf(child, depth + 1)
    if (found !== '') return found
  }
  return ''
}

function hasImage(node: DomNode, depth: number): boolean {
  if (node.name === 'img') return true
  return depth < 6 && !isHidden(node) && (node.children ?? []).slice(0, 20).some((child) => hasImage(child, depth + 1))
}

function hasBlocks(node: DomNode, depth: number): boolean {
  if (depth > 8) return true
  return (node.children ?? []).some((child) => isBlock(child) || hasBlocks(child, depth + 1))
}
