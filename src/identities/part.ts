import type { Part } from '../part.ts'
import type { Identities } from './identities.ts'
import { identityCreated, identityDeleted, identityUpdated } from './model.ts'
import { routes } from './routes.ts'

export function identitiesPart(identities: Identities): Part {
  return { name: 'identities', routes: routes(identities), events: [identityCreated, identityUpdated, identityDeleted] }
}
