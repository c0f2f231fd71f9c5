import type { SealedColumn } from '../core/seal.ts'

/** The private halves of signing keys, each bound to its name. */
export const sealedKeys: SealedColumn = {
  table: 'signing_keys',
  column: 'private_key',
  context: ({ kid }) => placeOf(String(kid)),
}

/** What a sealed signing key is bound to. */
export function placeOf(kid: string): string {
  return `signing key ${kid}`
}
