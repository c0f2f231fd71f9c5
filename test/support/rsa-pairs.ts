import type { KeyPairKeyObjectResult } from 'node:crypto'
import { makeRsaPair, type RsaPair } from '../../src/domains/keys.ts'

const made: Promise<KeyPairKeyObjectResult>[] = []

/** Makes keys of which no two are the same, yet which other boxes of this process have as well: each costs more than most tests. */
export function rsaPairs(): RsaPair {
  let count = 0
  return () => (made[count++] ??= makeRsaPair())
}
