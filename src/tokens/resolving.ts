import { placeOf } from './did-document.ts'
import type { Issuers } from './issuers.ts'
import type { Resolution } from './model.ts'
import { InvalidToken } from './reading.ts'

/** Resolves DIDs of other boxes as for tokens: through the outbound HTTP client, cached for minutes. */
export async function resolveDid(issuers: Pick<Issuers, 'document'>, account: string, did: string): Promise<Resolution> {
  if (!did.startsWith('did:web:')) return { state: 'elsewhere', message: 'It was not looked up: only did:web is supported.' }
  const place = placeOf(did)
  if (!place) return { state: 'nobody', message: `${did} does not resolve.` }
  try {
    const { listsAny } = await issuers.document(account, place)
    return listsAny
      ? { state: 'there', message: `The agent exists at ${place.host}.` }
      : {
          state: 'nobody',
          message: `The document of ${did} has no keys: the agent is suspended there, or never had any.`,
        }
  } catch (error) {
    if (!(error instanceof InvalidToken)) throw error
    return { state: error.temporary ? 'unreachable' : 'nobody', message: error.message }
  }
}
