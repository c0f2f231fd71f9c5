import type { SealedColumn } from '../core/seal.ts'

/** The private halves of DKIM keys, each bound to its selector and the domain's name. */
export const sealedKeys: SealedColumn = {
  table: 'dkim_keys',
  column: 'private_key',
  // that of a key that signs no more is gone
  only: "dkim_keys.private_key <> x''",
  from: 'dkim_keys JOIN domains ON domains.id = dkim_keys.domain_id',
  context: ({ selector, name }) => `dkim ${String(selector)} ${String(name)}`,
}
