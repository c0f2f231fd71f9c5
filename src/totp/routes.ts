import { Deleted, Page, Paging } from '../core/shapes.ts'
import { type AnyRoute, routeOf } from '../http/route.ts'
import type { Entries } from './entries.ts'
import { CodeFilter, NewTotpEntry, TotpCode, TotpEntry } from './model.ts'
import type { CodeReader } from './reading.ts'

const route = routeOf('One-time passwords')

export function routes(entries: Entries, reading: CodeReader): AnyRoute[] {
  return [
    route('POST', '/identities/:id/totp', {
      scope: 'identities:write',
      sdk: 'totp.create',
      errors: { 403: ['plan_limit_reached'] },
      audit: 'totp.created',
      summary: 'Create a one-time password',
      description:
        'From the secret that a service shows when its second factor is enabled, or the uri of its QR code. The secret is stored encrypted and ' +
        'never returned again, only codes derived from it.',
      body: NewTotpEntry,
      reply: TotpEntry,
      status: 201,
      location: (entry) => `/v1/identities/${entry.identity_id}/totp/${entry.id}`,
      example: { body: { secret: 'JBSW Y3DP EHPK 3PXP', service_name: 'Example' } },
      handle: ({ caller, params, body }) => entries.create(caller, params.id, body),
    }),
    route('GET', '/identities/:id/totp', {
      scope: 'identities:read',
      sdk: 'totp.list',
      summary: 'List one-time passwords',
      query: Paging,
      reply: Page(TotpEntry),
      handle: ({ caller, params, query }) => entries.list(caller, params.id, query),
    }),
    route('GET', '/identities/:id/totp/:totp_id', {
      scope: 'identities:read',
      sdk: 'totp.get',
      summary: 'Get a one-time password',
      description: 'Its properties; the code has a separate call.',
      reply: TotpEntry,
      handle: ({ caller, params }) => entries.get(caller, params.id, params.totp_id),
    }),
    route('GET', '/identities/:id/totp/:totp_id/code', {
      scope: 'identities:read',
      sdk: 'totp.code',
      errors: { 429: ['too_many_waits'] },
      audit: 'totp.generated',
      summary: 'Read the code',
      description:
        'The present code. Every read is recorded by a totp.read event, with key and address, before the response. Codes of a suspended identity ' +
        'can be read. At most 500 calls of a key and 1,000 of an account can wait for the next code at the same time (rate_limited, code too_many_waits).',
      query: CodeFilter,
      reply: TotpCode,
      effect: true,
      timeout: 130_000,
      example: { query: { min_remaining: '0' } },
      handle: ({ caller, params, query, signal, turn }) =>
        reading.read(caller, params.id, params.totp_id, query.min_remaining * 1000, { signal, turn }),
    }),
    route('DELETE', '/identities/:id/totp/:totp_id', {
      scope: 'identities:write',
      sdk: 'totp.delete',
      audit: 'totp.deleted',
      summary: 'Delete a one-time password',
      description: 'Deletes the secret: if it is the only second factor, disable that at the service first.',
      reply: Deleted,
      handle: ({ caller, params }) => entries.remove(caller, params.id, params.totp_id),
    }),
  ]
}
