import type { Log } from '../core/log.ts'
import type { Module } from '../module.ts'
import { aliasRoutes } from './alias-routes.ts'
import type { Aliases } from './aliases.ts'
import type { Cascade } from './cascade.ts'
import type { Identities } from './identities.ts'
import { identityCreated, identityDeleted, identityUpdated } from './model.ts'
import { routes } from './routes.ts'

export function identitiesModule(identities: Identities, aliases: Aliases, cascade: Cascade, log: Log): Module {
  const expired: Parameters<Identities['expire']>[0] = ({ id, account_id }) =>
    log.info({ account_id, identity_id: id }, 'identity expired')
  return {
    name: 'identities',
    routes: [...routes(identities), ...aliasRoutes(aliases)],
    events: [identityCreated, identityUpdated, identityDeleted],
    jobs: [
      { name: 'expire-identities', schedule: '*/5 * * * * *', run: (signal?: AbortSignal) => identities.expire(expired, signal) },
    ],
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
