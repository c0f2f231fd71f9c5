import { htmlEscaped } from '../core/text.ts'
import { asInBrowsers } from './browser-html.ts'
import { displayedProperties, elementStyle, textStyle } from './display-styles.ts'
import { htmlLimit } from './markdown.ts'
import { hiddenElements, Tokenizer } from './markup.ts'
import { Nesting } from './nesting.ts'
import { type Appearance, hidingOf } from './screening/appearance.ts'
import { type ElementLook, type LookAttributes, SeenTextCollector } from './screening/seen.ts'

/** The URL from which an image is loaded; undefined removes it, and the alternative text is displayed. */
type ImageSource = (source: string) => string | undefined

const number = /^\d{1,4}$/
const small = /^\d{1,2}$/
const side = /^(?:left|right|center|justify|top|middle|bottom|baseline)$/i

/** Attributes that are displayed, with their values. */
const globalAttributes: Readonly<Record<string, RegExp>> = {
  dir: /^(?:ltr|rtl|auto)$/i,
  lang: /^[\w-]{1,35}$/,
  align: side,
  title: /^/,
}
const cell = { width: /^\d{1,4}%?$/, colspan: small, rowspan: small, valign: side }

/** Allowed elements with their own attributes. Elements that are not allowed lose their tags and keep their text. */
const attributes: Readonly<Record<string, Readonly<Record<string, RegExp>>>> = {
  a: { href: /^/ },
  img: { src: /^/, alt: /^/, width: number, height: number },
  blockquote: { type: /^cite$/i },
  ol: { type: /^[1ai]$/i, start: number },
  ul: { type: /^(?:disc|circle|square)$/i },
  li: { value: number },
  table: { width: /^\d{1,4}%?$/, border: small, cellpadding: small, cellspacing: small },
  td: cell,
  th: { ...cell, scope: /^(?:row|col)$/i },
  tr: { valign: side },
  br: { clear: /^/ },
}

const plain =
  'abbr acronym address article aside b bdi big caption center cite code dd del dfn div dl dt em figcaption figure font footer h1 h2 h3 h4 h5 h6 ' +
  'header hr i ins kbd main mark p pre q s samp section small span strike strong sub summary sup tbody tfoot thead time tt u var wbr'

const allowed = new Set([...Object.keys(attributes), ...plain.split(' ')])

const voidElements = new Set(['img', 'br', 'hr', 'wbr'])

/** Characters between two looks at the clock, and the milliseconds of one iteration of the event loop. */
const sliceLength = 4096
const longestTurn = 8

/** Characters of an attribute that says how its element looks; what follows might hide it. */
const longestLook = 100_000
const longestName = 60

const nextIteration = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/**
 * Renders untrusted HTML: an allow-list of elements and attributes, links that open in a new window, images from the URLs that `image` returns. Text
 * that counts as hidden (`screening/seen.ts`) is left out, so that a person sees what programs read of the message; no style that is left can hide
 * any other. Works token by token: no tree is built.
 */
export async function sanitize(html: string, image: ImageSource): Promise<string> {
  const text = asInBrowsers(html)
  const writer = new Writer(text, image)
  const tokenizer = new Tokenizer({ decodeEntities: true }, writer)
  let begun = performance.now()
  // programs read no more of it
  for (let at = 0; at < text.length && at - writer.hidden < htmlLimit + sliceLength; at += sliceLength) {
    tokenizer.write(text.slice(at, at + sliceLength))
    if (performance.now() - begun < longestTurn) continue
    await nextIteration()
    begun = performance.now()
  }
  tokenizer.end()
  return writer.written.join('')
}

class Writer {
  readonly written: string[] = []
  /** Characters of the HTML that are hidden text. */
  hidden = 0
  readonly #html: string
  readonly #image: ImageSource
  readonly #nest = new Nesting()
  readonly #seen: SeenTextCollector
  #tag = ''
  #attributes = new Map<string, string>()
  #name = ''
  #value = ''
  /** True once an element has a background. */
  #isPainted = false

  constructor(html: string, image: ImageSource) {
    this.#html = html
    this.#image = image
    this.#seen = new SeenTextCollector(html, displayedProperties)
  }

  onopentagname(start: number, end: number): void {
    this.#tag = this.#html.slice(start, Math.min(end, start + 20)).toLowerCase()
    this.#attributes = new Map()
    this.#nest.open(this.#tag)
  }

  onattribname(start: number, end: number): void {
    this.#name = end - start > longestName ? '' : this.#html.slice(start, end).toLowerCase()
    this.#value = ''
  }

  onattribdata(start: number, end: number): void {
    this.#value += this.#html.slice(start, end)
  }

  onattribentity(codepoint: number): void {
    this.#value += String.fromCodePoint(codepoint)
  }

  onattribend(): void {
    // the first of several attributes of one name counts (HTML 13.2.5.33)
    if (!this.#attributes.has(this.#name)) this.#attributes.set(this.#name, this.#value)
  }

  onopentagend(): void {
    const tag = this.#tag
    const within = this.#lookIn()
    const { appearance, styles } = within(this.#nest.appearance)
    if (this.#nest.isFormatted) {
      this.#nest.look(tag, appearance, (around) => within(around).appearance, `${tag} ${[...this.#attributes].join(' ')}`)
    } else this.#nest.look(tag, appearance)
    if (allowed.has(tag) && appearance.hidden === null) this.written.push(`<${tag}${this.#keptAttributes(styles)}>`)
  }

  onselfclosingtag(): void {
    this.onopentagend()
  }

  onclosetag(start: number, end: number): void {
    const tag = this.#html.slice(start, Math.min(end, start + 20)).toLowerCase()
    const isShown = this.#nest.appearance.hidden === null
    if (end - start <= 20) this.#nest.close(tag)
    if (isShown && allowed.has(tag) && !voidElements.has(tag)) this.written.push(`</${tag}>`)
  }

  ontext(start: number, end: number): void {
    this.#write(start, end, this.#html.slice(start, end))
  }

  ontextentity(codepoint: number, end: number): void {
    this.#write(this.#html.lastIndexOf('&', end - 1), end, String.fromCodePoint(codepoint))
  }

  onend(): void {}
  oncdata(): void {}
  oncomment(): void {}
  ondeclaration(): void {}
  onprocessinginstruction(): void {}

  /** The look of the element that is opened, in others, as `anchors.ts` takes it. */
  #lookIn(): (around: Appearance) => ElementLook {
    const tag = this.#tag
    const given = (name: string): string => this.#attributes.get(name) ?? ''
    const look: LookAttributes = {
      style: given('style'),
      class: given('class'),
      id: given('id'),
      color: given(tag === 'body' ? 'text' : 'color'),
      bgcolor: given('bgcolor'),
      background: given('background'),
      others: Object.fromEntries([...this.#attributes].filter(([name]) => this.#seen.asksFor(name))),
    }
    const isLong = [look.style, look.class, look.id, look.background].some((value) => value.length >= longestLook)
    const hasHiding = this.#attributes.has('hidden') || this.#attributes.has('popover')
    const hiding = hiddenElements.has(tag) || isLong ? 'element' : hasHiding ? 'hidden_attribute' : undefined
    return (around) => this.#seen.look(around, tag, look, hiding)
  }

  #write(start: number, end: number, text: string): void {
    const appearance = this.#seen.within(this.#nest.appearance)
    if (hidingOf(appearance) !== null) {
      this.hidden += end - start
      return
    }
    const style = text.trim() === '' ? '' : textStyle(appearance, this.#isPainted)
    this.written.push(style === '' ? htmlEscaped(text) : `<span style="${style}">${htmlEscaped(text)}</span>`)
  }

  #keptAttributes(styles: ElementLook['styles']): string {
    const values = { ...globalAttributes, ...attributes[this.#tag] }
    const kept: string[] = []
    for (const [name, value] of this.#attributes) {
      if (!Object.hasOwn(values, name) || !values[name]!.test(value)) continue
      const safe = this.#attributeValue(name, value)
      if (safe !== undefined) kept.push(` ${name}="${htmlEscaped(safe)}"`)
    }
    const style = styles === null ? '' : elementStyle(styles)
    if (style !== '') kept.push(` style="${style}"`)
    this.#isPainted ||= style.includes('background-color')
    if (this.#tag === 'a') kept.push(' target="_blank" rel="noopener noreferrer nofollow"')
    return kept.join('')
  }

  #attributeValue(name: string, value: string): string | undefined {
    if (name === 'src') return this.#image(normalizedUrl(value))
    if (name === 'href') return /^(?:https?:\/\/|mailto:|tel:)/i.test(normalizedUrl(value)) ? normalizedUrl(value) : undefined
    return value
  }
}

/** Removes characters that browsers ignore in URLs. */
function normalizedUrl(address: string): string {
  // eslint-disable-next-line no-control-regex
  return address.replace(/[\t\r\n\u0000]/g, '').trim()
}
