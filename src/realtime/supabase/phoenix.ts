import * as z from 'zod'
import { parseForeign } from '../../core/json.ts'
import { frameBounds } from '../channels.ts'

/** The two serializations of a Phoenix frame: an object (1.0.0), or an array (2.0.0). */
export type Version = '1.0.0' | '2.0.0'

const Ref = z.union([z.string(), z.number()]).nullish()
const Payload = z
  .record(z.string(), z.unknown())
  .nullish()
  .transform((payload) => payload ?? {})

const Object1 = z.object({ topic: z.string(), event: z.string(), payload: Payload, ref: Ref, join_ref: Ref })
const Array2 = z
  .tuple([Ref, Ref, z.string(), z.string(), Payload])
  .transform(([join_ref, ref, topic, event, payload]) => ({ join_ref, ref, topic, event, payload }))

/** A frame of a client; some send no `join_ref`. */
export type PhoenixFrame = z.output<typeof Object1>
export type Reference = PhoenixFrame['ref']

/** Undefined for an invalid frame of this version. */
export function readFrame(version: Version, text: string): PhoenixFrame | undefined {
  try {
    const value = parseForeign(text, 'The frame', frameBounds)
    return (version === '1.0.0' ? Object1 : Array2).safeParse(value).data
  } catch {
    return undefined
  }
}

interface OutgoingFrame {
  join_ref?: Reference
  ref?: Reference
  topic: string
  event: string
  /** A JSON object: clients fail on null. */
  payload: string
}

export function writeFrame(version: Version, frame: OutgoingFrame): string {
  const [before, after] = aroundPayload(version, frame)
  return `${before}${frame.payload}${after}`
}

/** What is before and after the payload. Version 1.0.0 has no `join_ref` from server to client. */
export function aroundPayload(
  version: Version,
  { join_ref, ref, topic, event }: Omit<OutgoingFrame, 'payload'>,
): [string, string] {
  const [joined, reference] = [JSON.stringify(join_ref ?? null), JSON.stringify(ref ?? null)]
  const [about, what] = [JSON.stringify(topic), JSON.stringify(event)]
  return version === '1.0.0'
    ? [`{"topic":${about},"event":${what},"payload":`, `,"ref":${reference}}`]
    : [`[${joined},${reference},${about},${what},`, ']']
}
