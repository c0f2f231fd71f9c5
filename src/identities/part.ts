import type { Part } from '../part.ts'
import { aliasRoutes } from './alias-routes.ts'
import type { Aliases } from './aliases.ts'
import type { Identities } from './identities.ts'
import { identityCreated, identityDeleted, identityUpdated } from './model.ts'
import { routes } from './routes.ts'

export function identitiesPart(identities: Identities, aliases: Aliases): Part {
  return {
    name: 'identities',
    routes: [...routes(identities), ...aliasRoutes(aliases)],
    events: [identityCreated, identityUpdated, identityDeleted],
  }
}
