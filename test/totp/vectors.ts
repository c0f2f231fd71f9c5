import type { Recipe } from '../../src/totp/codes.ts'

/** RFC 6238, appendix B: the seeds of the reference code, and each code of eight digits at each second. */
const seeds = {
  SHA1: '12345678901234567890',
  SHA256: '12345678901234567890123456789012',
  SHA512: '1234567890123456789012345678901234567890123456789012345678901234',
} as const

const table: [second: number, SHA1: string, SHA256: string, SHA512: string][] = [
  [59, '94287082', '46119246', '90693936'],
  [1_111_111_109, '07081804', '68084774', '25091201'],
  [1_111_111_111, '14050471', '67062674', '99943326'],
  [1_234_567_890, '89005924', '91819424', '93441116'],
  [2_000_000_000, '69279037', '90698825', '38618901'],
  [20_000_000_000, '65353130', '77737706', '47863826'],
]

export interface Vector {
  algorithm: Recipe['algorithm']
  secret: Buffer
  second: number
  code: string
}

export const vectors: Vector[] = table.flatMap(([second, ...codes]) =>
  (['SHA1', 'SHA256', 'SHA512'] as const).map((algorithm, index) => ({
    algorithm,
    secret: Buffer.from(seeds[algorithm]),
    second,
    code: codes[index]!,
  })),
)
