import * as z from 'zod'
import { type AnyRoute, isIdempotent } from '../route.ts'
import type { Described } from './document.ts'

export const ErrorBody = z
  .object({
    error: z.object({
      type: z.enum(['invalid_request', 'unauthorized', 'forbidden', 'not_found', 'conflict', 'rate_limited', 'internal_error']),
      message: z.string().meta({ description: 'what was wrong, and what would be right' }),
      param: z.string().optional().meta({ description: 'path of the invalid parameter: `metadata.colour`' }),
      status: z.int(),
      code: z.string().meta({ description: 'a stable machine-readable code' }),
      request_id: z.string().meta({ description: 'also in X-Request-Id' }),
    }),
  })
  .meta({ id: 'Error', description: 'The shape of every error.' })

const failures: Record<number, { name: string; description: string }> = {
  400: {
    name: 'BadRequest',
    description: 'invalid_request: a parameter is missing or invalid; `param` names it, the message states what is allowed.',
  },
  401: { name: 'Unauthorized', description: 'unauthorized: missing or invalid API key or session.' },
  403: { name: 'Forbidden', description: 'forbidden: the key lacks the scope, or a rule or plan limit does not allow the call.' },
  404: { name: 'NotFound', description: 'not_found: no such object, or the key may not see it.' },
  409: { name: 'Conflict', description: 'conflict: the object exists already, or its state does not allow the call.' },
  429: { name: 'RateLimited', description: 'rate_limited: too many requests; `Retry-After` states when to try again.' },
  500: { name: 'InternalError', description: 'internal_error: an error of the server.' },
}

/** The responses of errors, for the components of a document. */
export const errorResponses: Record<string, Described> = Object.fromEntries(
  Object.values(failures).map(({ name, description }) => [name, errorResponse(description)]),
)

/** What every call may answer, in one response. */
export const anyError = errorResponse(
  'What every call may answer. 400 invalid_request: `param` names what is missing or invalid. 401 unauthorized: missing or invalid key. ' +
    '403 forbidden: the key lacks the scope, or a limit of the account is reached (plan_limit_reached). 404 not_found: no such object, or the ' +
    'key may not see it. 409 conflict: it exists already, or the Idempotency-Key was used with another body, or its first call is not finished. ' +
    '429 rate_limited: see Retry-After. 500 internal_error.',
)

function errorResponse(description: string): Described {
  return { description, content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } } }
}

/** The errors of a call: those of every call of its kind, and those that it declares, with their codes. */
export function errorsOf(route: AnyRoute, path: string): Record<string, Described> {
  const statuses = new Set([400, 429, 500])
  if (route.scope !== 'public') statuses.add(401).add(403)
  if (path.includes(':')) statuses.add(404)
  if (isIdempotent(route)) statuses.add(404).add(409)
  for (const status of Object.keys(route.errors ?? {})) statuses.add(Number(status))
  return Object.fromEntries(
    [...statuses].toSorted((one, other) => one - other).map((status) => [status, reference(route, status)]),
  )
}

function reference({ errors }: AnyRoute, status: number): Described {
  const codes = errors?.[status as 409]
  const $ref = `#/components/responses/${failures[status]!.name}`
  return codes === undefined ? { $ref } : { $ref, description: `Codes: ${codes.join(', ')}.` }
}
