import { type Appearance, plainAppearance } from './screening/appearance.ts'

interface Open {
  name: string
  appearance: Appearance
  /** How it looks in another place, and what it is like. */
  again: ((around: Appearance) => Appearance) | undefined
  key: string
}

/** Elements that are opened again at most, after what was around them is closed, and how many that are alike (HTML 13.2.4.3). */
const maxAgain = 50
const maxAlike = 3

/** Elements that are looked at to find those that tags close. */
const maxSteps = 1_000_000

const lost: Appearance = { ...plainAppearance, hidden: 'display' }

/**
 * Tracks which elements are open. An opening tag closes implied elements only while they are on top. A closing tag closes as in browsers
 * (HTML 13.2.6.4.7): not across a cell, an object or the like, nor a block by the tag of an inline element, and formatting elements that it closes
 * with others are opened again. Where it closes less than the parser of the Markdown conversion does, the depth is overestimated.
 */
export class Nesting {
  deepest = 0
  readonly #stack: Open[] = []
  readonly #counts = new Map<string, number>()
  #steps = 0
  /** Formatting elements that are open. */
  #formatting = 0

  open(name: string): void {
    const implied = closedBy.get(name)
    if (implied !== undefined) {
      for (let top = this.#stack.at(-1); top !== undefined && implied.has(top.name); top = this.#stack.at(-1)) this.#pop()
    }
    if (empty.has(name)) return
    this.#push({ name, appearance: this.appearance, again: undefined, key: '' })
  }

  /** Sets how the element that was opened last looks; `again` and `key` are those of `Open`, where it may be opened again. */
  look(name: string, appearance: Appearance, again?: Open['again'], key = ''): void {
    const top = this.#stack.at(-1)
    if (top?.name !== name) return
    top.appearance = appearance
    top.again = again
    top.key = key
  }

  /** True if the element that was opened last may be opened again: it is a formatting element, or in one. */
  get isFormatted(): boolean {
    return this.#formatting > 0
  }

  /** How text at the current position looks. */
  get appearance(): Appearance {
    return this.#steps > maxSteps ? lost : (this.#stack.at(-1)?.appearance ?? plainAppearance)
  }

  close(name: string): void {
    if ((this.#counts.get(name) ?? 0) === 0) return
    const at = this.#closedBy(name)
    if (at === -1) return
    if (at === this.#stack.length - 1) {
      this.#pop()
      return
    }
    const inside = this.#stack.slice(at + 1)
    this.#steps += inside.length
    while (this.#stack.length > at) this.#pop()
    const hasBlock = inside.some((one) => special.has(one.name))
    if (formatting.has(name) && hasBlock) for (const one of inside) this.#pushAgain(one)
    else if (!markers.has(name)) this.#openAgain(inside)
  }

  /** The place of the element that a tag closes; -1 if it closes none. */
  #closedBy(name: string): number {
    for (let at = this.#stack.length - 1; at >= 0; at--) {
      this.#steps += 1
      const one = this.#stack[at]!.name
      // what is left of a form goes on in it
      if (one === name) return name === 'form' && at < this.#stack.length - 1 ? -1 : at
      if (isClosedIn(name, one)) continue
      return -1
    }
    return -1
  }

  #openAgain(inside: readonly Open[]): void {
    const marker = inside.findIndex((one) => markers.has(one.name))
    const active = (marker === -1 ? inside : inside.slice(0, marker)).filter((one) => formatting.has(one.name))
    const alike = new Map<string, number>()
    for (const [index, one] of active.entries()) {
      const count = (alike.get(one.key) ?? 0) + 1
      alike.set(one.key, count)
      if (count > maxAlike) continue
      if (index > maxAgain) this.#steps = Infinity
      else this.#pushAgain(one)
    }
  }

  #pushAgain(one: Open): void {
    this.#push({ ...one, appearance: one.again?.(this.appearance) ?? this.appearance })
  }

  #push(one: Open): void {
    this.#stack.push(one)
    this.#counts.set(one.name, (this.#counts.get(one.name) ?? 0) + 1)
    if (formatting.has(one.name)) this.#formatting += 1
    if (this.#stack.length > this.deepest) this.deepest = this.#stack.length
  }

  #pop(): void {
    const one = this.#stack.pop()
    if (one === undefined) return
    this.#counts.set(one.name, (this.#counts.get(one.name) ?? 1) - 1)
    if (formatting.has(one.name)) this.#formatting -= 1
  }
}

/** True if the closing tag of an element closes another that is open in it. */
function isClosedIn(name: string, inner: string): boolean {
  if (name === 'template' || raw.has(name)) return true
  if (raw.has(inner) || inner === 'template') return false
  if (tableParts.has(name)) return inner !== 'table'
  if (markers.has(inner) || inner === 'table' || inner === 'select') return false
  if (name === 'p' && inner === 'button') return false
  if (name === 'li' && (inner === 'ul' || inner === 'ol')) return false
  return special.has(name) || formatting.has(name) || !special.has(inner)
}

const formatting = nameSet('a b big code em font i nobr s small strike strong tt u')

/** Elements across which no formatting element is opened again, and which other tags do not close. */
const markers = nameSet('applet caption td th marquee object template')

const tableParts = nameSet('table tbody thead tfoot tr td th caption colgroup')

/** Elements whose content is a text for browsers. */
const raw = nameSet('iframe noembed noframes textarea title script style xmp')

const special = nameSet(
  'address applet article aside blockquote body button caption center colgroup dd details dir div dl dt fieldset figcaption figure footer form ' +
    'frameset h1 h2 h3 h4 h5 h6 head header hgroup html iframe li listing main marquee menu nav noembed noframes noscript object ol p plaintext ' +
    'pre script search section select style summary table tbody td template textarea tfoot th thead title tr ul xmp',
)

const empty = nameSet(
  'area base basefont br col command embed frame hr img input isindex keygen link meta param source track wbr',
)

const formFields = 'input option optgroup select button datalist textarea'

const paragraphEnds =
  'p h1 h2 h3 h4 h5 h6 address article aside blockquote details div dl fieldset figcaption figure footer form header hr main nav ol pre section table ul'

const closedBy = new Map<string, Set<string>>([
  ...each(paragraphEnds, 'p'),
  ...each('select input output button datalist textarea', formFields),
  ...each('dd dt', 'dd dt'),
  ...each('rt rp', 'rt rp'),
  ...each('tbody tfoot', 'thead tbody'),
  ...each('tr', 'tr th td'),
  ...each('th', 'th'),
  ...each('td', 'thead th td'),
  ...each('body', 'head link script'),
  ...each('li', 'li'),
  ...each('option', 'option'),
  ...each('optgroup', 'optgroup option'),
])

function nameSet(list: string): Set<string> {
  return new Set(list.split(' '))
}

function each(names: string, closes: string): [string, Set<string>][] {
  return names.split(' ').map((name) => [name, nameSet(closes)])
}
