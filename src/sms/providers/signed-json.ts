import * as z from 'zod'
import { Fault, placeOf } from '../../core/fault.ts'
import { JsonScan } from '../../core/json.ts'

/** The largest clock difference of a signed call, in seconds. */
const drift = 300

/** Throws Fault forbidden for a missing time (in seconds), or one too far from now (in milliseconds), which may be a replay. */
export function requireRecent(timestamp: string | undefined, now: number): string {
  if (timestamp === undefined || !/^\d{1,12}$/.test(timestamp)) throw refused('it has no timestamp')
  if (Math.abs(Number(timestamp) - now / 1000) > drift)
    throw refused('its timestamp differs from the clock by more than 5 minutes')
  return timestamp
}

/** Parses a signed body. Throws Fault invalid_request, naming the parameter, for another shape. */
export function readJson<Shape extends z.ZodType>(shape: Shape, bytes: Buffer): z.output<Shape> {
  let value: unknown
  try {
    new JsonScan('The body').add(bytes)
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (error) {
    if (error instanceof Fault) throw error
    throw new Fault('invalid_request', 'The body must be JSON in UTF-8.', { code: 'malformed_json' })
  }
  const { data, error } = shape.safeParse(value)
  if (!error) return data
  const { path, message } = error.issues[0]!
  const param = placeOf(path)
  throw new Fault('invalid_request', `${param || 'The body'}: ${message}.`, {
    code: 'invalid_value',
    ...(param ? { param } : {}),
  })
}

/** The fault of a call without a valid signature. */
export function refused(reason: string): Fault {
  return new Fault('forbidden', `This call is not from the SMS provider: ${reason}.`, { code: 'bad_signature' })
}
