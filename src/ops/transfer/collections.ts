import * as z from 'zod'
import { type Caller, may } from '../../core/scopes.ts'
import type { AnyRoute } from '../../http/route.ts'

/** A list of the API that an export contains: its route, and its file. */
interface Collection {
  file: string
  path: string
  query: (identityId: string) => Record<string, string>
}

const collections: Collection[] = [
  { file: 'threads.jsonl', path: '/identities/:id/threads', query: () => ({}) },
  { file: 'cards.jsonl', path: '/identities/:id/cards', query: () => ({}) },
  { file: 'totp.jsonl', path: '/identities/:id/totp', query: () => ({}) },
  { file: 'logins.jsonl', path: '/identities/:id/logins', query: () => ({}) },
  { file: 'agents.jsonl', path: '/agents', query: (identity_id) => ({ identity_id }) },
  // whole e-mails are in them: a few at a time
  { file: 'events.jsonl', path: '/identities/:id/events', query: () => ({ since: '1970-01-01T00:00:00Z', limit: '20' }) },
]

const Listed = z.object({ data: z.array(z.unknown()), next_cursor: z.string().nullable() })

/**
 * The API's lists about an identity that the caller may read, page by page, through the same route declarations as calls: an export contains
 * what the key may read, and nothing that the API does not return.
 */
export function collectionsOf(
  routes: readonly AnyRoute[],
  caller: Caller,
  identityId: string,
): { file: string; items: () => AsyncGenerator }[] {
  return collections.flatMap(({ file, path, query }) => {
    const route = routes.find((one) => one.method === 'GET' && one.path === path)
    if (!route || route.scope === 'public' || !may(caller, [route.scope].flat())) return []
    return [{ file, items: () => pages(route, caller, identityId, query(identityId)) }]
  })
}

async function* pages(route: AnyRoute, caller: Caller, id: string, query: Record<string, string>): AsyncGenerator {
  let cursor: string | null = null
  do {
    const asked = route.query!.parse({ ...query, ...(cursor === null ? {} : { cursor }) })
    const answer = await route.handle({
      params: { id },
      query: asked as never,
      body: {} as never,
      caller,
      raw: { bytes: Buffer.alloc(0), headers: {}, search: '' },
      upload: { octets: { [Symbol.asyncIterator]: nothing }, length: 0 },
      host: '',
      request_id: '',
      signal: AbortSignal.timeout(60_000),
      turn: async () => undefined,
      remember: async () => undefined,
    })
    const { data, next_cursor } = Listed.parse(route.reply!.parse(answer))
    yield* data
    cursor = next_cursor
  } while (cursor !== null)
}

// eslint-disable-next-line require-yield
async function* nothing(): AsyncGenerator<Buffer> {}
