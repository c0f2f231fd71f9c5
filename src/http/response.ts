import type { Readable } from 'node:stream'
import type { SessionCookie } from './route.ts'

/** A response: status, body and headers. */
export interface Answer {
  status: number
  type: string
  body: string | Buffer | Readable
  headers: Record<string, string>
  cookie?: SessionCookie
}
