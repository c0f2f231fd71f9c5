import { hiddenElements, isHiddenStyle, Tokenizer } from './markup.ts'
import { Nesting } from './nesting.ts'

/** An `<a href>` as it stands in HTML. */
export interface Anchor {
  /** Character references decoded, white space at the edges and line ends inside removed, spaces inside `%20`. */
  href: string
  /** The plain text of the anchor, or what its image is called; folded, at most 200 characters. */
  text: string
  /** Up to 160 characters of the text before it. */
  before: string
}

/**
 * The `http` and `https` anchors of HTML that are shown, in their order, at most `most`; the runs of its other text that hold an address,
 * at most as many; how deep its elements nest, and how many there are. One linear pass over the tokens: no tree is
 * built, so hostile nesting costs nothing.
 */
export function anchorsOf(html: string, most: number): { anchors: Anchor[]; runs: string[]; depth: number; tags: number } {
  const walk = new Walk(html, most)
  const tokenizer = new Tokenizer({ decodeEntities: true }, walk)
  tokenizer.write(html)
  tokenizer.end()
  walk.onend()
  return { anchors: walk.anchors, runs: walk.runs, depth: walk.nest.deepest, tags: walk.tags }
}

const longestRun = 20_000

// The words before and after these are two words.
const parting = new Set(
  'area base br col embed hr img input link meta param source track wbr p li dt dd option optgroup tr td th thead tbody tfoot rt rp'.split(
    ' ',
  ),
)

class Walk {
  readonly anchors: Anchor[] = []
  readonly runs: string[] = []
  readonly nest = new Nesting()
  tags = 0
  readonly #html: string
  readonly #most: number
  #tag = ''
  #attribute = ''
  #value = ''
  #href = ''
  #alt = ''
  #anchor: Anchor | undefined
  #recent = ''
  #run = ''
  #style: string | undefined
  #isHidden = false

  constructor(html: string, most: number) {
    this.#html = html
    this.#most = most
  }

  onopentagname(start: number, end: number): void {
    this.#endRun()
    this.#tag = this.#html.slice(start, Math.min(end, start + 20)).toLowerCase()
    this.#href = ''
    this.#alt = ''
    this.#style = undefined
    this.#isHidden = hiddenElements.has(this.#tag)
    if (parting.has(this.#tag)) this.#words(' ')
    this.nest.open(this.#tag)
    this.tags++
  }

  onattribname(start: number, end: number): void {
    this.#attribute = end - start > 6 ? '' : this.#html.slice(start, end).toLowerCase()
    this.#value = ''
    if (this.#attribute === 'hidden') this.#isHidden = true
  }

  onattribdata(start: number, end: number): void {
    if (this.#wanted()) this.#value += this.#html.slice(start, Math.min(end, start + 10_000))
  }

  onattribentity(codepoint: number): void {
    if (this.#wanted() && this.#value.length < 10_000) this.#value += String.fromCodePoint(codepoint)
  }

  onattribend(): void {
    if (!this.#wanted()) return
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
      if (/^https?:\/\//i.test(href) && this.anchors.length < this.#most)
        this.#anchor = { href, text: '', before: this.#recent.slice(-160) }
    } else if (this.#tag === 'img' && isShown && this.#anchor !== undefined && this.#alt !== '') {
      this.#words(` ${this.#alt} `)
    }
  }

  onselfclosingtag(): void {
    this.onopentagend()
  }

  onclosetag(start: number, end: number): void {
    this.#endRun()
    const tag = this.#html.slice(start, Math.min(end, start + 20)).toLowerCase()
    if (tag === 'a') this.#finish()
    else if (tag !== 'span' && tag !== 'b' && tag !== 'strong' && tag !== 'font') this.#words(' ')
    // Of a longer name only the start is known: better nested too deep than not deep enough.
    if (end - start <= 20) this.nest.close(tag)
  }

  ontext(start: number, end: number): void {
    if (!this.nest.hidden && this.#anchor === undefined && this.#run.length < longestRun)
      this.#run += this.#html.slice(start, Math.min(end, start + longestRun))
    // Of a long text only the end can stand before an anchor, only the start be its text.
    const cut = end - start > 2000 && this.#anchor === undefined ? end - 2000 : start
    this.#words(this.#html.slice(cut, Math.min(end, cut + 2000)))
  }

  ontextentity(codepoint: number): void {
    if (this.#run !== '' && this.#run.length < longestRun) this.#run += String.fromCodePoint(codepoint)
    this.#words(String.fromCodePoint(codepoint))
  }

  onend(): void {
    this.#endRun()
    this.#finish()
  }

  oncdata(): void {}
  oncomment(): void {}
  ondeclaration(): void {}
  onprocessinginstruction(): void {}

  #wanted(): boolean {
    if (this.#attribute === 'style') return this.#style === undefined && !this.#isHidden
    return (this.#tag === 'a' && this.#attribute === 'href') || (this.#tag === 'img' && this.#attribute === 'alt')
  }

  #endRun(): void {
    if (this.#run === '') return
    if (this.runs.length < this.#most && /https?:\/\//i.test(this.#run)) this.runs.push(this.#run)
    this.#run = ''
  }

  #words(text: string): void {
    if (this.nest.hidden) return
    if (this.#anchor !== undefined) {
      if (this.#anchor.text.length < 1000) this.#anchor.text += text
      return
    }
    if (this.anchors.length < this.#most)
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
