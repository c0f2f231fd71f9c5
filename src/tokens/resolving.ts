import type { UnverifiedDidDocument } from './did-document.ts'
import { placeOf } from './did-web.ts'
import type { Issuers } from './issuers.ts'
import type { DidResolver, Resolution } from './model.ts'
import { InvalidToken } from './reading.ts'

/** Resolves DIDs of other boxes as for tokens: through the outbound HTTP client, cached for minutes. */
export class Resolving implements DidResolver {
  readonly #issuers: Pick<Issuers, 'document'>

  constructor(issuers: Pick<Issuers, 'document'>) {
    this.#issuers = issuers
  }

  async resolve(did: string): Promise<Resolution> {
    if (!did.startsWith('did:web:')) return { state: 'elsewhere', message: 'It was not looked up: only did:web is looked up.' }
    const place = placeOf(did)
    if (!place) return { state: 'nobody', message: `${did} leads nowhere.` }
    try {
      const document = await this.#issuers.document(place)
      return assertsSomething(document)
        ? { state: 'there', message: `There is such an agent at ${place.host}.` }
        : {
            state: 'nobody',
            message: `The document of ${did} vouches for nothing: it is suspended there, or never spoke for itself.`,
          }
    } catch (error) {
      if (!(error instanceof InvalidToken)) throw error
      return { state: error.temporary ? 'unreachable' : 'nobody', message: error.message }
    }
  }
}

function assertsSomething({ assertionMethod }: UnverifiedDidDocument): boolean {
  return [assertionMethod ?? []].flat().length > 0
}
