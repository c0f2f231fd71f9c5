import { type Appearance, plainAppearance } from './screening/appearance.ts'

/**
 * Tracks how deep elements nest in the parser of the Markdown conversion. An opening tag closes implied elements only while they are on top. A
 * closing tag closes down to the nearest element of its name, and nothing when there is none.
 */
export class Nesting {
  deepest = 0
  readonly #names: string[] = []
  readonly #looks: Appearance[] = []
  readonly #open = new Map<string, number>()

  open(name: string): void {
    const implied = closedBy.get(name)
    if (implied !== undefined) {
      for (let top = this.#names.at(-1); top !== undefined && implied.has(top); top = this.#names.at(-1)) this.#pop()
    }
    if (empty.has(name)) return
    this.#looks[this.#names.length] = this.appearance
    this.#names.push(name)
    this.#open.set(name, (this.#open.get(name) ?? 0) + 1)
    if (this.#names.length > this.deepest) this.deepest = this.#names.length
  }

  /** Sets how the element that was opened last looks. */
  look(name: string, appearance: Appearance): void {
    if (this.#names.at(-1) === name) this.#looks[this.#names.length - 1] = appearance
  }

  /** How text at the current position looks. */
  get appearance(): Appearance {
    return this.#looks[this.#names.length - 1] ?? plainAppearance
  }

  close(name: string): void {
    if ((this.#open.get(name) ?? 0) === 0) return
    while (this.#pop() !== name);
  }

  #pop(): string | undefined {
    const name = this.#names.pop()
    if (name !== undefined) this.#open.set(name, (this.#open.get(name) ?? 1) - 1)
    return name
  }
}

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
