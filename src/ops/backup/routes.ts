import { Page, Paging } from '../../core/shapes.ts'
import { type AnyRoute, routeOf } from '../../http/route.ts'
import { Job } from '../../jobs/model.ts'
import type { Backups } from './backups.ts'
import { Backup } from './model.ts'

const route = routeOf('Backups')

export function routes(backups: Backups): AnyRoute[] {
  return [
    route('POST', '/backups', {
      scope: 'account:write',
      operator: true,
      receipt: 'all',
      sdk: 'backups.create',
      errors: { 409: ['backup_not_configured', 'job_running', 'too_many_jobs'] },
      audit: { action: 'backup.started', target: (job: Job) => job.id },
      summary: 'Create a backup',
      description:
        "Only for the box's operator. Starts a job that writes the whole box to a file in `backup.directory`, and then removes surplus backups; its result names the file.",
      reply: Job,
      handle: ({ caller }) => backups.begin(caller),
    }),
    route('GET', '/backups', {
      scope: 'account:read',
      operator: true,
      sdk: 'backups.list',
      errors: { 409: ['backup_not_configured'] },
      summary: 'List backups',
      description: "Newest first. Only for the box's operator.",
      query: Paging,
      reply: Page(Backup),
      handle: ({ query }) => backups.list(query),
    }),
  ]
}
