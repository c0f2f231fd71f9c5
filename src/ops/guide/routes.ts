import { type AnyRoute, routeOf } from '../../http/route.ts'
import { type BoxFacts, guide } from './guide.ts'

/** The page that agents read first. */
export function guideRoutes(facts: () => BoxFacts): AnyRoute[] {
  return [
    routeOf('Reference')('GET', '/llms.txt', {
      root: true,
      scope: 'public',
      rate: 'document',
      summary: 'Get the guide for agents',
      description:
        'What an agent with a key needs: what this box can do now, and the commonest jobs with their calls and responses, in at most 6 kB.',
      download: 'text/plain',
      handle: async () => ({
        type: 'text/plain; charset=utf-8',
        bytes: Buffer.from(guide(facts())),
        headers: { 'Content-Disposition': 'inline' },
      }),
    }),
  ]
}
