import * as z from 'zod'
import { Fault, placeOf } from '../../core/fault.ts'
import { JsonScan } from '../../core/json-scan.ts'

/** How far the time of a signed call may be from ours, in seconds. */
const drift = 300

/** Throws Fault forbidden for a time (in seconds) that is none, or too far from now (in milliseconds): it may be a replay. */
export function requireRecent(timestamp: string | undefined, now: number): string {
  if (timestamp === undefined || !/^\d{1,12}$/.test(timestamp)) throw refused('it bears no time')
  if (Math.abs(Number(timestamp) - now / 1000) > drift) throw refused('its time is more than 5 minutes from ours')
  return timestamp
}

/** What a signed body says. Throws Fault invalid_request, naming the parameter, for one of another form. */
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

/** What was not signed with the key that both sides know. */
export function refused(reason: string): Fault {
  return new Fault('forbidden', `This call is not from the SMS provider: ${reason}.`, { code: 'bad_signature' })
}
