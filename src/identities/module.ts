import type { Module } from '../module.ts'
import { aliasRoutes } from './alias-routes.ts'
import type { Aliases } from './aliases.ts'
import type { Endings } from './endings.ts'
import type { Identities } from './identities.ts'
import { identityCreated, identityDeleted, identityUpdated } from './model.ts'
import { routes } from './routes.ts'

export function identitiesModule(identities: Identities, aliases: Aliases, endings: Endings): Module {
  return {
    name: 'identities',
    routes: [...routes(identities), ...aliasRoutes(aliases)],
    events: [identityCreated, identityUpdated, identityDeleted],
    start: async () => endings.start(),
    stop: () => endings.stop(),
  }
}
