import { domainNameOf } from './domain-names.ts'
import { invalid } from './fault.ts'

/** True if an address or its domain is in a list. */
export function isListed(entries: readonly string[], address: string): boolean {
  if (address === '' || entries.length === 0) return false
  const canonical = canonicalOf(address)
  return canonical !== null && (entries.includes(canonical) || entries.includes(canonical.slice(canonical.lastIndexOf('@'))))
}

/** An address as it is compared, its domain in A-labels; null for what is none. */
export function canonicalOf(address: string): string | null {
  const at = address.lastIndexOf('@')
  const domain = domainNameOf(address.slice(at + 1))
  return at === -1 || domain === undefined ? null : `${address.slice(0, at).toLowerCase()}@${domain}`
}

/** A list as it is stored, each entry once. */
export function entriesOf(list: readonly string[], param: string): string[] {
  return [...new Set(list.map((entry, index) => entryOf(entry, `${param}.${index}`)))]
}

/** An entry as it is stored: `ada@example.net` or `@example.net`. */
export function entryOf(entry: string, param: string): string {
  const found = canonicalOf(entry.includes('@') ? entry : `@${entry}`)
  if (found === null || /\s/.test(found)) {
    throw invalid(param, `${entry} is neither an address such as ada@example.net nor a domain such as @example.net.`)
  }
  return found
}
