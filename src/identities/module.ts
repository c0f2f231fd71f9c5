import type { Module } from '../module.ts'
import { aliasRoutes } from './alias-routes.ts'
import type { Aliases } from './aliases.ts'
import type { Cascade } from './cascade.ts'
import type { Identities } from './identities.ts'
import { identityCreated, identityDeleted, identityUpdated } from './model.ts'
import { routes } from './routes.ts'

export function identitiesModule(identities: Identities, aliases: Aliases, cascade: Cascade): Module {
  return {
    name: 'identities',
    routes: [...routes(identities), ...aliasRoutes(aliases)],
    events: [identityCreated, identityUpdated, identityDeleted],
    get work() {
      return aliases.work
    },
    start: async () => {
      cascade.start()
      aliases.start()
    },
    stop: async () => {
      await Promise.all([cascade.stop(), aliases.stop()])
    },
  }
}
