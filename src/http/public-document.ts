import { createHash } from 'node:crypto'
import type { Download } from './route.ts'

/** A small JSON document for everybody: pages of any origin may read it, and it may be kept for `maxAge` seconds. */
export function publicDocument(
  value: unknown,
  { type = 'application/json', maxAge }: { type?: string; maxAge: number },
): Download {
  const bytes = Buffer.from(JSON.stringify(value))
  return {
    type,
    bytes,
    headers: {
      'Content-Disposition': 'inline',
      'Cache-Control': `public, max-age=${maxAge}`,
      ETag: `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 27)}"`,
      'Access-Control-Allow-Origin': '*',
      'Cross-Origin-Resource-Policy': 'cross-origin',
    },
  }
}
