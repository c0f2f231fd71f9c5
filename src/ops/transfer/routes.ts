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
      summary: 'Export an identity',
      description:
        'Begins a job that writes all that the key may read of the identity into a ZIP: messages, text messages, threads, events, and the ' +
        'records of cards and one-time passwords without what is secret. Its result has a url, which needs no key and opens for 24 hours.',
      body: ExportInput,
      reply: Job,
      status: 201,
      location: ({ id }) => `/v1/jobs/${id}`,
      example: { body: { format: 'mbox' } },
      handle: ({ caller, params, body }) => exports.start(caller, params.id, body),
    }),
    route('POST', '/identities/:id/import', {
      scope: ['messages:write', 'emails:write'],
      summary: 'Import messages',
      description:
        'The body is an mbox, one message, or a ZIP of such, of a maildir, or that an export made; at most transfer.upload_limit octets. ' +
        'Begins a job that reads it. What is there already (the same Message-ID and octets) is left out, so that an import may be repeated. ' +
        'Imported messages are found and counted like others, but no event tells of them, and no check vouches for them.',
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
      summary: 'Download an export by its signed URL',
      query: SignedQuery,
      download: 'application/zip',
      handle: ({ params, query }) => exports.open(params.job_id, params.index, query),
    }),
  ]
}
