import type { Scope } from '../core/scopes.ts'
import { Deleted, Page } from '../core/shapes.ts'
import { type AnyRoute, routeOf } from '../http/route.ts'
import type { Jobs } from './jobs.ts'
import { Job, JobFilter } from './model.ts'

const route = routeOf('Jobs')

/** Each kind requires one of these to end its jobs. */
const write: Scope[] = ['messages:write', 'emails:write', 'account:write']

/** The scopes that can start a job can follow it; each job also has scopes of its own. */
const scope: Scope[] = [
  'identities:read',
  'messages:read',
  'emails:read',
  'account:read',
  'identities:write',
  'messages:write',
  'emails:write',
  'account:write',
]

export function routes(jobs: Jobs): AnyRoute[] {
  return [
    route('GET', '/jobs', {
      scope,
      sdk: 'jobs.list',
      summary: 'List jobs',
      description:
        'Newest first: running jobs, and those of the last 7 days whose contents the key may read. An account keeps its last 1,000.',
      query: JobFilter,
      reply: Page(Job),
      handle: ({ caller, query }) => jobs.list(caller, query),
    }),
    route('GET', '/jobs/:id', {
      scope,
      sdk: 'jobs.get',
      summary: 'Get a job',
      description: 'Its progress and result.',
      reply: Job,
      handle: ({ caller, params }) => jobs.get(caller, params.id),
    }),
    route('POST', '/jobs/:id/cancel', {
      stores: false,
      scope: write,
      receipt: 'all',
      sdk: 'jobs.cancel',
      audit: 'job.cancelled',
      summary: 'Cancel a job',
      description:
        'Stops a running job; what it has done so far stays. A finished job is returned unchanged. Exports and imports require a scope to write ' +
        'messages, backups account:write.',
      reply: Job,
      handle: ({ caller, params }) => jobs.cancel(caller, params.id),
    }),
    route('DELETE', '/jobs/:id', {
      scope: write,
      sdk: 'jobs.delete',
      audit: 'job.deleted',
      summary: 'Delete a job',
      description:
        'Stops it if it is running, and removes it with its file (a backup stays). Exports and imports require a scope to write messages, backups ' +
        'account:write.',
      reply: Deleted,
      handle: ({ caller, params }) => jobs.remove(caller, params.id),
    }),
  ]
}
