import * as z from 'zod'
import { Id, Timestamp } from '../core/shapes.ts'

const biggest = 2n ** 256n - 1n

const Address = z.string().regex(/^0x[0-9a-fA-F]{40}$/, { error: 'must be an address: 0x and 40 hexadecimal digits' })

const ChainId = z
  .union(
    [
      z.int().min(1),
      z
        .string()
        .regex(/^(?:eip155:)?[1-9]\d{0,15}$/)
        .transform((text) => Number(text.replace('eip155:', ''))),
    ],
    { error: 'must be the number of an EVM chain, such as 1 or "eip155:1"' },
  )
  .refine((number) => Number.isSafeInteger(number), { error: 'must be at most 9007199254740991' })
  .meta({ override: { type: ['integer', 'string'] }, description: 'of an EVM chain: 1, or "eip155:1"' })

const TokenId = z
  .union(
    [
      z.string().regex(/^(?:0|[1-9]\d{0,77})$/),
      z
        .int()
        .min(0)
        .transform((number) => String(number)),
    ],
    { error: 'must be the id of a token, in decimal: "22"' },
  )
  .refine((text) => /^\d+$/.test(text) && BigInt(text) <= biggest, { error: 'must fit into 256 bits' })
  .meta({ override: { type: ['string', 'integer'] }, description: 'the agentId of the registry, in decimal' })

/** Links an agent to a token of an ERC-8004 identity registry. */
export const Erc8004Link = z
  .object({
    id: Id('link'),
    chain_id: z.int(),
    registry: z.string().meta({ description: 'the address of the identity registry, with its checksum (EIP-55)' }),
    token_id: z.string().meta({ description: 'decimal; up to 256 bits' }),
    owner_address: z.string().optional(),
    tx_hash: z.string().optional(),
    status: z
      .literal('unverified')
      .meta({ description: 'the box does not query any chain: clients must check the registry themselves' }),
    created_at: Timestamp,
  })
  .meta({ id: 'Erc8004Link' })
export type Erc8004Link = z.output<typeof Erc8004Link>

export const NewErc8004Link = z
  .strictObject({
    chain_id: ChainId,
    registry: Address.meta({
      description: 'the identity registry; letters all of one case, or with the right checksum (EIP-55)',
    }),
    token_id: TokenId,
    owner_address: Address.optional(),
    tx_hash: z
      .string()
      .regex(/^0x[0-9a-fA-F]{64}$/, { error: 'must be a transaction: 0x and 64 hexadecimal digits' })
      .toLowerCase()
      .optional()
      .meta({ description: 'the transaction that registered it' }),
  })
  .meta({ id: 'NewErc8004Link' })
export type NewErc8004Link = z.output<typeof NewErc8004Link>
