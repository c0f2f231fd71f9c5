import { hiddenElements, isHiddenStyle, Tokenizer } from './markup.ts'
import { Nesting } from './nesting.ts'

/** An `<a href>` of HTML. */
export interface Anchor {
  /** Character references decoded, trimmed, line ends removed, inner spaces as `%20`. */
  href: string
  /** The plain text of the anchor, or the alternative text of its image; folded, at most 200 characters. */
  text: string
  /** Up to 160 characters of the text before it. */
  before: string
}

/**
 * The visible `http` and `https` anchors of HTML in order, at most `max`; the runs of other text that contain a URL, at most as many; the depth
 * and number of its elements. One linear pass over the tokens: no tree is built, so hostile nesting costs nothing.
 */
export function anchorsOf(html: string, max: number): { anchors: Anchor[]; textRuns: string[]; depth: number; tags: number } {
  const collector = new AnchorCollector(html, max)
  const tokenizer = new Tokenizer({ decodeEntities: true }, collector)
  tokenizer.write(html)
  tokenizer.end()
  collector.onend()
  return { anchors: collector.anchors, textRuns: collector.textRuns, depth: collector.nest.deepest, tags: collector.tags }
}

const maxTextRun = 20_000

// These tags separate words.
const separatingTags = new Set(
  'area base br col embed hr img input link meta param source track wbr p li dt dd option optgroup tr td th thead tbody tfoot rt rp'.split(
    ' ',
  ),
)

class AnchorCollector {
  readonly anchors: Anchor[] = []
  readonly textRuns: string[] = []
  readonly nest = new Nesting()
  tags = 0
  readonly #html: string
  readonly #max: number
  #tag = ''
  #attribute = ''
  #value = ''
  #href = ''
  #alt = ''
  #anchor: Anchor | undefined
  #recent = ''
  #textRun = ''
  #style: string | undefined
  #isHidden = false

  constructor(html: string, max: number) {
    this.#html = html
    this.#max = max
  }

  onopentagname(start: number, end: number): void {
    this.#endTextRun()
    this.#tag = this.#html.slice(start, Math.min(end, start + 20)).toLowerCase()
    this.#href = ''
    this.#alt = ''
    this.#style = undefined
    this.#isHidden = hiddenElements.has(this.#tag)
    if (separatingTags.has(this.#tag)) this.#addText(' ')
    this.nest.open(this.#tag)
    this.tags++
  }

  onattribname(start: number, end: number): void {
    this.#attribute = end - start > 6 ? '' : this.#html.slice(start, end).toLowerCase()
    this.#value = ''
    if (this.#attribute === 'hidden') this.#isHidden = true
  }

  onattribdata(start: number, end: number): void {
    if (this.#isWantedAttribute()) this.#value += this.#html.slice(start, Math.min(end, start + 10_000))
  }

  onattribentity(codepoint: number): void {
    if (this.#isWantedAttribute() && this.#value.length < 10_000) this.#value += String.fromCodePoint(codepoint)
  }

  onattribend(): void {
    if (!this.#isWantedAttribute()) return
    if (this.#attribute === 'href') this.#href ||= this.#value
    else if (this.#attribute === 'alt') this.#alt ||= this.#value
    else this.#style ??= this.#value
  }

  onopentagend(): void {
    const isShown = !this.#isHidden && (this.#style === undefined || !isHiddenStyle(this.#style))
    if (!isShown) this.nest.hide(this.#tag)
    if (this.#tag === 'a') {
      this.#finish()
      if (this.nest.hidden) return
      const href = this.#href
        .replace(/[\t\r\n]/g, '')
        .trim()
        .replaceAll(' ', '%20')
      if (/^https?:\/\//i.test(href) && this.anchors.length < this.#max)
        this.#anchor = { href, text: '', before: this.#recent.slice(-160) }
    } else if (this.#tag === 'img' && isShown && this.#anchor !== undefined && this.#alt !== '') {
      this.#addText(` ${this.#alt} `)
    }
  }

  onselfclosingtag(): void {
    this.onopentagend()
  }

  onclosetag(start: number, end: number): void {
    this.#endTextRun()
    const tag = this.#html.slice(start, Math.min(end, start + 20)).toLowerCase()
    if (tag === 'a') this.#finish()
    else if (tag !== 'span' && tag !== 'b' && tag !== 'strong' && tag !== 'font') this.#addText(' ')
    // Of a longer name only the start is known. It is not closed: overestimating the depth is safe.
    if (end - start <= 20) this.nest.close(tag)
  }

  ontext(start: number, end: number): void {
    if (!this.nest.hidden && this.#anchor === undefined && this.#textRun.length < maxTextRun)
      this.#textRun += this.#html.slice(start, Math.min(end, start + maxTextRun))
    // Of a long text only the end can precede an anchor, and only the start can be its text.
    const cut = end - start > 2000 && this.#anchor === undefined ? end - 2000 : start
    this.#addText(this.#html.slice(cut, Math.min(end, cut + 2000)))
  }

  ontextentity(codepoint: number): void {
    if (this.#textRun !== '' && this.#textRun.length < maxTextRun) this.#textRun += String.fromCodePoint(codepoint)
    this.#addText(String.fromCodePoint(codepoint))
  }

  onend(): void {
    this.#endTextRun()
    this.#finish()
  }

  oncdata(): void {}
  oncomment(): void {}
  ondeclaration(): void {}
  onprocessinginstruction(): void {}

  #isWantedAttribute(): boolean {
    if (this.#attribute === 'style') return this.#style === undefined && !this.#isHidden
    return (this.#tag === 'a' && this.#attribute === 'href') || (this.#tag === 'img' && this.#attribute === 'alt')
  }

  #endTextRun(): void {
    if (this.#textRun === '') return
    if (this.textRuns.length < this.#max && /https?:\/\//i.test(this.#textRun)) this.textRuns.push(this.#textRun)
    this.#textRun = ''
  }

  #addText(text: string): void {
    if (this.nest.hidden) return
    if (this.#anchor !== undefined) {
      if (this.#anchor.text.length < 1000) this.#anchor.text += text
      return
    }
    if (this.anchors.length < this.#max)
      this.#recent = this.#recent.length > 4000 ? this.#recent.slice(-400) + text : this.#recent + text
  }

  #finish(): void {
    const anchor = this.#anchor
    if (anchor === undefined) return
    this.#anchor = undefined
    anchor.text = fold(anchor.text).slice(0, 200)
    anchor.before = fold(anchor.before)
    this.#recent += ` ${anchor.text} `
    this.anchors.push(anchor)
  }
}

function fold(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}
