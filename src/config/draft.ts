import type { ParsedFile } from './file.ts'
import { type ConfigProblem, type Place, spelled } from './problems.ts'
import { read, variable } from './settings.ts'

/** Settings as they are merged, before validation: their values, the source of each, and the problems so far. */
export class Draft {
  readonly tree: Record<string, unknown>
  readonly problems: ConfigProblem[] = []
  readonly #written: ParsedFile | undefined
  readonly #places = new Map<string, Place>()

  constructor(written: ParsedFile | undefined) {
    this.#written = written
    this.tree = written?.tree ?? {}
  }

  /** Sets a value and remembers which variable, credential or line gave it. */
  assign(path: readonly string[], value: unknown, place: Place): void {
    if (this.set(path, value)) this.#places.set(spelled(path), place)
  }

  /** Sets a value, replacing any before; false when something other than a group is in the way. */
  set(path: readonly string[], value: unknown): boolean {
    let group: object = this.tree
    for (const step of path.slice(0, -1)) {
      if (!Object.hasOwn(group, step)) Reflect.set(group, step, {})
      const next: unknown = Reflect.get(group, step)
      if (typeof next !== 'object' || next === null || Array.isArray(next)) return false
      group = next
    }
    return Reflect.set(group, path.at(-1) ?? '', value)
  }

  forget(path: readonly string[]): void {
    const group = read(this.tree, path.slice(0, -1))
    if (typeof group === 'object' && group !== null) Reflect.deleteProperty(group, path.at(-1) ?? '')
  }

  /** True if the file writes the path with nothing after its colon. */
  blank(path: readonly string[]): boolean {
    return read(this.tree, path) === null && this.#written?.blank(path) === true
  }

  /** The place to correct it: in the file, or in a variable or credential. */
  place(path: readonly PropertyKey[], part: 'name' | 'value'): Place {
    for (let length = path.length; length > 0; length -= 1) {
      const outside = this.#places.get(spelled(path.slice(0, length)))
      if (outside) return outside
    }
    return !this.#written || this.#besideVariable(path)
      ? { source: variable(path.map(String)) }
      : { ...this.#written.place(path, part), path: spelled(path) }
  }

  // A setting required by one from a variable is best set by a variable too.
  #besideVariable(path: readonly PropertyKey[]): boolean {
    const group = `${spelled(path.slice(0, -1))}.`
    return read(this.tree, path) === undefined && [...this.#places.keys()].some((name) => name.startsWith(group))
  }
}
