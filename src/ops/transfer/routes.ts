import { hour } from '../../core/clock.ts'
import { SignedQuery } from '../../core/shapes.ts'
import { type AnyRoute, routeOf } from '../../http/route.ts'
import { Job } from '../../jobs/model.ts'
import type { Exports } from './exports.ts'
import type { Imports } from './imports.ts'
import { ExportInput } from './model.ts'

const route = routeOf('Export and import')

/** The timeout of an upload in milliseconds. */
const arrival = hour

export function routes(exports: Exports, imports: Imports): AnyRoute[] {
  return [
    route('POST', '/identities/:id/export', {
      scope: ['messages:read', 'emails:read'],
      sdk: 'identities.export',
      errors: { 409: ['too_many_exports', 'too_many_jobs', 'job_running'] },
      audit: 'export.started',
      summary: 'Export an identity',
      description:
        'Starts a job that writes all data of the identity that the key may read into a ZIP: messages, text messages, threads, events, and the ' +
        'records of cards and one-time passwords without secrets. Its result has a url, which requires no key, and is valid for 24 hours or ' +
        'until the key or session ends that read it.',
      body: ExportInput,
      reply: Job,
      status: 201,
      location: ({ id }) => `/v1/jobs/${id}`,
      example: { body: { format: 'mbox' } },
      handle: ({ caller, params, body }) => exports.start(caller, params.id, body),
    }),
    route('POST', '/identities/:id/import', {
      scope: ['messages:write', 'emails:write'],
      sdk: 'identities.importMessages',
      errors: { 400: ['body_too_large'], 409: ['job_running', 'too_many_jobs'] },
      audit: 'import.started',
      summary: 'Import messages',
      description:
        'The body is an mbox, one message, a ZIP of these or of a maildir, or an export; at most transfer.upload_limit bytes. ' +
        'Starts a job that imports it. Existing messages (same Message-ID and bytes) are skipped, so an import can be repeated. ' +
        'Imported messages are searchable and counted like others, but cause no events, and are not authenticated.',
      upload: 'application/octet-stream',
      timeout: arrival,
      reply: Job,
      status: 201,
      location: ({ id }) => `/v1/jobs/${id}`,
      example: { body: 'From: Sam <sam@sender.test>\r\nSubject: Old news\r\nMessage-ID: <old@sender.test>\r\n\r\nLong ago.\r\n' },
      handle: ({ caller, params, upload, signal }) => imports.start(caller, params.id, upload, signal),
    }),
    route('GET', '/exports/:job_id/:index', {
      scope: 'public',
      rate: 'document',
      errors: { 403: ['bad_signature', 'url_expired', 'url_ended'] },
      summary: 'Download an export by its signed URL',
      query: SignedQuery,
      download: 'application/zip',
      handle: ({ caller, params, query }) => exports.open(params.job_id, params.index, query, caller.ip),
    }),
  ]
}
