import { oneLine } from '../core/text.ts'
import { hiddenElements, Tokenizer } from './markup.ts'
import { Nesting } from './nesting.ts'
import { type Appearance, hidingOf } from './screening/appearance.ts'
import { type LookAttributes, noLook, type SeenText, SeenTextCollector } from './screening/seen.ts'

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
 * and number of its elements; what a person sees of it. One linear pass over the tokens: no tree is built, so hostile nesting costs nothing.
 */
export function anchorsOf(
  html: string,
  max: number,
): { anchors: Anchor[]; textRuns: string[]; depth: number; tags: number; seen: SeenText } {
  const collector = new AnchorCollector(html, max)
  const tokenizer = new Tokenizer({ decodeEntities: true }, collector)
  tokenizer.write(html)
  tokenizer.end()
  collector.onend()
  const { anchors, textRuns, nest, tags } = collector
  return { anchors, textRuns, depth: nest.deepest, tags, seen: collector.seen.result() }
}

const maxTextRun = 20_000

// These tags separate words.
const separatingTags = new Set(
  'area base br col embed hr img input link meta param source track wbr p li dt dd option optgroup tr td th thead tbody tfoot rt rp'.split(
    ' ',
  ),
)

/** Tags between the letters of a word. */
const inlineTags = new Set('span b strong font a i em u s small big sub sup wbr'.split(' '))

/** The attributes that are read of every element, and those whose text a program may read in place of what is seen. */
const lookNames = new Set(['style', 'class', 'id', 'color', 'bgcolor', 'background'])
const textNames = new Set(['alt', 'title', 'aria-label'])
const longestName = 60

/** Characters that are read of an attribute that says how an element looks, and of another. */
const longest = { look: 100_000, other: 10_000 }

class AnchorCollector {
  readonly anchors: Anchor[] = []
  readonly textRuns: string[] = []
  readonly nest = new Nesting()
  readonly seen: SeenTextCollector
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
  #look = noLook
  #others: Record<string, string> | undefined
  #hiding: 'code' | 'element' | 'hidden_attribute' | undefined

  constructor(html: string, max: number) {
    this.#html = html
    this.#max = max
    this.seen = new SeenTextCollector(html)
  }

  onopentagname(start: number, end: number): void {
    this.#endTextRun()
    this.#tag = this.#html.slice(start, Math.min(end, start + 20)).toLowerCase()
    this.#href = ''
    this.#alt = ''
    this.#look = noLook
    this.#others = undefined
    this.#hiding = hiddenElements.has(this.#tag) ? (/^(?:style|script|title)$/.test(this.#tag) ? 'code' : 'element') : undefined
    if (!inlineTags.has(this.#tag)) this.seen.separate(' ')
    if (separatingTags.has(this.#tag)) this.#addText(' ')
    this.nest.open(this.#tag)
    this.tags++
  }

  onattribname(start: number, end: number): void {
    this.#attribute = end - start > longestName ? '' : this.#html.slice(start, end).toLowerCase()
    if (this.#attribute === 'text' && this.#tag === 'body') this.#attribute = 'color'
    this.#value = ''
    if (this.#attribute === 'hidden' || this.#attribute === 'popover') this.#hiding ??= 'hidden_attribute'
  }

  onattribdata(start: number, end: number): void {
    if (!this.#isWantedAttribute()) return
    const isLook = lookNames.has(this.#attribute)
    const most = isLook ? longest.look : longest.other
    this.#value += this.#html.slice(start, Math.min(end, start + most))
    // what follows might hide the element
    if (isLook && this.#value.length >= most) this.#hiding ??= 'element'
  }

  onattribentity(codepoint: number): void {
    if (this.#isWantedAttribute() && this.#value.length < longest.look) this.#value += String.fromCodePoint(codepoint)
  }

  onattribend(): void {
    if (!this.#isWantedAttribute()) return
    const name = this.#attribute
    if (name === 'href') this.#href ||= this.#value
    else if (name === 'alt' && this.#tag === 'img') this.#alt ||= this.#value
    if (textNames.has(name)) this.seen.unseen('attribute', `${this.#value}\n\n`)
    // the first of several attributes of one name counts (HTML 13.2.5.33)
    else if (lookNames.has(name) && this.#look[name as keyof LookAttributes] === '')
      this.#look = { ...this.#look, [name]: this.#value }
    if (this.seen.asksFor(name) && !lookNames.has(name)) this.#addOther(name, this.#value.slice(0, 200))
  }

  /** Keeps an attribute that a rule asks for. */
  #addOther(name: string, value: string): void {
    if (this.#others === undefined) {
      this.#others = {}
      this.#look = { ...this.#look, others: this.#others }
    }
    if (!Object.hasOwn(this.#others, name)) this.#others[name] = value
  }

  onopentagend(): void {
    const [tag, look, hiding] = [this.#tag, this.#look, this.#hiding]
    const own = this.seen.look(this.nest.appearance, tag, look, hiding).appearance
    const isShown = hidingOf(own) === null
    if (this.nest.isFormatted) {
      const again = (around: Appearance): Appearance => this.seen.look(around, tag, look, hiding).appearance
      this.nest.look(tag, own, again, `${tag} ${hiding ?? ''} ${look.style} ${look.class} ${look.id} ${look.color}`)
    } else this.nest.look(tag, own)
    if (this.#tag === 'a') {
      this.#finish()
      if (this.#isHidden) return
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
    if (!inlineTags.has(tag)) this.seen.separate(' ')
    if (tag === 'a') this.#finish()
    else if (tag !== 'span' && tag !== 'b' && tag !== 'strong' && tag !== 'font') this.#addText(' ')
    // Of a longer name only the start is known. It is not closed: overestimating the depth is safe.
    if (end - start <= 20) this.nest.close(tag)
  }

  ontext(start: number, end: number): void {
    this.seen.text(start, end, this.#html.slice(start, end), this.nest.appearance)
    if (!this.#isHidden && this.#anchor === undefined && this.#textRun.length < maxTextRun)
      this.#textRun += this.#html.slice(start, Math.min(end, start + maxTextRun))
    // Of a long text only the end can precede an anchor, and only the start can be its text.
    const cut = end - start > 2000 && this.#anchor === undefined ? end - 2000 : start
    this.#addText(this.#html.slice(cut, Math.min(end, cut + 2000)))
  }

  ontextentity(codepoint: number, end: number): void {
    this.seen.text(this.#html.lastIndexOf('&', end - 1), end, String.fromCodePoint(codepoint), this.nest.appearance)
    if (this.#textRun !== '' && this.#textRun.length < maxTextRun) this.#textRun += String.fromCodePoint(codepoint)
    this.#addText(String.fromCodePoint(codepoint))
  }

  onend(): void {
    this.#endTextRun()
    this.#finish()
  }

  oncdata(): void {}

  oncomment(start: number, end: number): void {
    const text = this.#html.slice(start, Math.min(end, start + maxTextRun))
    // Outlook's markup is in comments: of that only the text counts
    this.seen.unseen('comment', `${text.replace(/<[^<>]{0,2000}>/g, ' ')}\n\n`)
  }

  ondeclaration(): void {}
  onprocessinginstruction(): void {}

  #isWantedAttribute(): boolean {
    if (lookNames.has(this.#attribute) || textNames.has(this.#attribute) || this.seen.asksFor(this.#attribute)) return true
    return this.#tag === 'a' && this.#attribute === 'href'
  }

  #endTextRun(): void {
    if (this.#textRun === '') return
    if (this.textRuns.length < this.#max && /https?:\/\//i.test(this.#textRun)) this.textRuns.push(this.#textRun)
    this.#textRun = ''
  }

  get #isHidden(): boolean {
    return hidingOf(this.nest.appearance) !== null
  }

  #addText(text: string): void {
    if (this.#isHidden) return
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
    anchor.text = oneLine(anchor.text).slice(0, 200)
    anchor.before = oneLine(anchor.before)
    this.#recent += ` ${anchor.text} `
    this.anchors.push(anchor)
  }
}
