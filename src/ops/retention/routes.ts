import * as z from 'zod'
import { Id } from '../../core/shapes.ts'
import { type AnyRoute, routeOf } from '../../http/route.ts'
import type { Identities } from '../../identities/identities.ts'
import type { Trash } from './trash.ts'

const Emptied = z
  .object({ id: Id('ident'), purged: z.int().meta({ description: 'e-mails and text messages that are gone' }) })
  .meta({ id: 'Emptied' })

export function routes({ identities, trash }: { identities: Identities; trash: Trash }): AnyRoute[] {
  return [
    routeOf('Identities')('POST', '/identities/:id/trash/empty', {
      scope: 'messages:write',
      // frees space
      stores: false,
      receipt: ['purged'],
      summary: 'Empty the trash of an identity',
      description: 'E-mails and text messages in it go for good, and the room they took is free.',
      reply: Emptied,
      handle: async ({ caller, params }) => {
        const { id } = await identities.row(caller, params.id)
        return { id, purged: await trash.empty(id) }
      },
    }),
  ]
}
