import type { Part } from '../part.ts'
import { routes } from './routes.ts'
import type { Timeline } from './timeline.ts'
import type { Waiting } from './wait.ts'

export function timelinePart(timeline: Timeline, waiting: Waiting): Part {
  return { name: 'timeline', routes: routes(timeline, waiting) }
}
