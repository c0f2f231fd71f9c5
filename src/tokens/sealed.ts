import type { SealedColumn } from '../core/seal.ts'

/** The private halves of signing keys, each bound to its name. */
export const sealedKeys: SealedColumn = {
  table: 'signing_keys',
  column: 'private_key',
  // what was signed with them verifies no more; the next token makes others
  lost: 'DELETE FROM signing_keys WHERE private_key IS NOT NULL',
  context: ({ kid }) => placeOf(String(kid)),
}

/** What a sealed signing key is bound to. */
export function placeOf(kid: string): string {
  return `signing key ${kid}`
}
