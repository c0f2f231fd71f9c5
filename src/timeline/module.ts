import type { Module } from '../module.ts'
import { routes } from './routes.ts'
import type { Timeline } from './timeline.ts'
import type { Waiting } from './wait.ts'

export function timelineModule(timeline: Timeline, waiting: Waiting): Module {
  return { name: 'timeline', routes: routes(timeline, waiting) }
}
