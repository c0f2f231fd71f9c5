import { compile, type DomNode, type FormatCallback, type HtmlToTextOptions } from 'html-to-text'
import { hiddenElements, hiddenStyles, isHiddenStyle } from './markup.ts'

/** The most characters of HTML that are turned to Markdown; the rest is left out. */
export const htmlLimit = 1024 * 1024

/**
 * HTML as Markdown: headings, lists, `[text](url)`, a row of a data table as one line with ` | ` between its cells; no
 * images, no styles, nothing that is hidden (preheaders). The caller sees to it that the HTML is not nested deeper than
 * 1000 elements: the parser beneath takes quadratic time in the depth.
 */
export function markdownOf(html: string): string {
  const text = convert(html.length > htmlLimit ? html.slice(0, htmlLimit) : html)
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

/** HTML with its tags taken out and nothing else: for what nests too deep for `markdownOf`. */
export function strippedOf(html: string): string {
  return html
    .slice(0, htmlLimit)
    .replace(/<[^<>]*>/g, ' ')
    .replace(/[^\S\n]+/g, ' ')
    .replace(/ ?\n[ \n]*/g, '\n')
    .trim()
}

// A joiner beside a space joins nothing: that is how preheaders are filled up.
function withoutPadding(line: string): string {
  return line.replace(/[\u200c\u200d](?=[\s\u200c\u200d]|$)|(?<=^|\s)[\u200c\u200d]/g, '').replace(/[ \u2007]{2,}/g, ' ')
}

// What fills a preheader up: joiners and spaces and nothing else.
const invisible = /^[\s\u200c-\u200f\u2007\u2800\u3164]+$/

const headings = new Set(['h1', 'h2', 'h3', 'h4', 'h5', 'h6'])

/** Characters of an element that are read to see whether they are the words of a link or of a cell. */
const longestWords = 400

/** Quotations and lists in one another that are set off: each level is written on each line inside. */
const deepestSetOff = 8
const settingOff = new Set(['blockquote', 'ul', 'ol'])

const blockNames = new Set(
  'address article aside blockquote br center div dl fieldset footer form h1 h2 h3 h4 h5 h6 header hr li main nav ol p pre section table ul'.split(
    ' ',
  ),
)

const heading: FormatCallback = (element, walk, builder) => {
  // of headings in one another the outermost is one: each reads all the text inside
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
  const text = url === undefined ? '' : wordsOf(element)
  const label = text.trim()
  if (url === undefined || label.length > 200) {
    walk(element.children, builder)
    if (url !== undefined) builder.addInline(` [link](${url})`, { noWordTransform: true })
    return
  }
  const shown = label === '' ? alternative(element, 0) : label
  if (shown === '') {
    if (hasImage(element, 0)) builder.addInline(` [link](${url}) `, { noWordTransform: true })
    return
  }
  // The spaces at its edges part the link from the words around it.
  const before = /^\s/.test(text) ? ' ' : ''
  const after = /\s$/.test(text) ? ' ' : ''
  const same = shown === url || `https://${shown}` === url || `http://${shown}` === url
  builder.addInline(`${before}${same ? url : `[${shown.replace(/[[\]]/g, '')}](${url})`}${after}`, { noWordTransform: true })
}

const row: FormatCallback = (element, walk, builder) => {
  const cells = element.children.filter((child) => (child.name === 'td' || child.name === 'th') && wordsOf(child).trim() !== '')
  const isData = cells.length > 1 && cells.every((cell) => !hasBlocks(cell, 0) && wordsOf(cell).length <= 200)
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

const single = { leadingLineBreaks: 1, trailingLineBreaks: 1 }

const options: HtmlToTextOptions = {
  wordwrap: false,
  limits: { maxInputLength: htmlLimit, maxDepth: 100, maxChildNodes: 20_000, ellipsis: '' },
  formatters: {
    markdownHeading: heading,
    markdownAnchor: anchor,
    markdownRow: row,
    markdownRule: rule,
    markdownBullets: setOff('unorderedList'),
    markdownNumbers: setOff('orderedList'),
    markdownQuotation: setOff('blockquote'),
  },
  selectors: [
    ...[...headings].map((selector) => ({ selector, format: 'markdownHeading' })),
    ...['td', 'th', 'center', 'dt', 'dd', 'address', 'fieldset'].map((selector) => ({
      selector,
      format: 'block',
      options: single,
    })),
    ...['img', 'head', '[hidden]', ...hiddenElements, ...hiddenStyles].map((selector) => ({ selector, format: 'skip' })),
    { selector: 'a', format: 'markdownAnchor' },
    { selector: 'table', format: 'block', options: single },
    { selector: 'tr', format: 'markdownRow' },
    { selector: 'hr', format: 'markdownRule' },
    { selector: 'ul', format: 'markdownBullets', options: { itemPrefix: '- ', leadingLineBreaks: 2, trailingLineBreaks: 2 } },
    { selector: 'ol', format: 'markdownNumbers' },
    { selector: 'blockquote', format: 'markdownQuotation' },
    { selector: 'li', format: 'block', options: single },
  ],
}

const convert = compile(options)

function urlOf(element: DomNode): string | undefined {
  const href = (element.attribs['href'] ?? '').replace(/[\t\r\n]/g, '').trim()
  if (!/^https?:\/\//i.test(href) || href.length > 8192) return undefined
  return href.replaceAll(' ', '%20').replaceAll('(', '%28').replaceAll(')', '%29')
}

/** How many elements of these names an element is in. */
function countAround(element: DomNode, names: ReadonlySet<string>): number {
  let count = 0
  for (let node = element.parent; node; node = node.parent) if (names.has(node.name ?? '')) count += 1
  return count
}

/** As the library's formatter of this name does it, within not too many such elements. */
function setOff(name: string): FormatCallback {
  return (element, walk, builder, format) => {
    const usual = builder.options.formatters?.[name]
    if (usual && countAround(element, settingOff) < deepestSetOff) return usual(element, walk, builder, format)
    builder.openBlock({ leadingLineBreaks: 1 })
    walk(element.children, builder)
    builder.closeBlock({ trailingLineBreaks: 1 })
  }
}

/** The words of each element that was asked about: elements in one another would be read once for each level. */
const known = new WeakMap<DomNode, string>()

/** The shown text of an element, white space folded to one space but not trimmed; of a longer one some 400 characters. */
function wordsOf(element: DomNode): string {
  const before = known.get(element)
  if (before !== undefined) return before
  let text = ''
  if (!isHidden(element)) {
    for (const child of element.children ?? []) {
      const words = child.type === 'text' ? (child.data ?? '').replace(/\s+/g, ' ').slice(0, longestWords) : wordsOf(child)
      text = joined(text, isBlock(child) ? joined(joined(' ', words), ' ') : words)
      if (text.length >= longestWords) break
    }
  }
  known.set(element, text)
  return text
}

function joined(before: string, after: string): string {
  return before.endsWith(' ') && after.startsWith(' ') ? before + after.slice(1) : before + after
}

function isBlock(node: DomNode): boolean {
  return node.name !== undefined && blockNames.has(node.name)
}

function isHidden({ name, attribs }: DomNode): boolean {
  if (name !== undefined && hiddenElements.has(name)) return true
  return attribs !== undefined && (attribs['hidden'] !== undefined || isHiddenStyle(attribs['style'] ?? ''))
}

function alternative(node: DomNode, depth: number): string {
  if (node.name === 'img' && !isHidden(node)) return (node.attribs['alt'] ?? '').replace(/\s+/g, ' ').trim().slice(0, 200)
  if (depth > 5 || isHidden(node)) return ''
  for (const child of (node.children ?? []).slice(0, 20)) {
    const found = alternative(child, depth + 1)
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
