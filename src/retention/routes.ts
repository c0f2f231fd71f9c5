import { Deleted } from '../core/shapes.ts'
import { route } from '../http/route.ts'
import type { AnyRoute } from '../http/route.ts'
import type { Identities } from '../identities/identities.ts'
import type { Trash } from './trash.ts'

export function routes({ identities, trash }: { identities: Identities; trash: Trash }): AnyRoute[] {
  return [
    route({
      method: 'DELETE',
      path: '/identities/:id/trash',
      scope: 'messages:write',
      tag: 'Identities',
      summary: 'Empty the trash of an identity',
      description: 'E-mails and text messages in it go for good, and the room they took is free.',
      reply: Deleted,
      handle: async ({ caller, params }) => {
        const { id } = await identities.row(caller, params.id)
        await trash.empty(id)
        return { id, deleted: true as const }
      },
    }),
  ]
}
