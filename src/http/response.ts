import type { Readable } from 'stream'
import type { SessionCookie } from './route.ts'

/** What goes out: bytes and the headers that belong to them. */
export interface Answer {
  status: number
  type: string
  body: string | Buffer | Readable
  headers: Record<string, string>
  cookie?: SessionCookie
}
