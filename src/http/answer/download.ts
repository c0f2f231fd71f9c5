import { Fault } from '../../core/fault.ts'
import type { Answer, Download } from '../route.ts'

/**
 * The response of a download: an attachment by default, with a Content-Security-Policy that disables everything should a browser show it.
 * A Buffer supports one range (RFC 9110 14.2); requests for several get the whole.
 */
export function ranged(download: Download, range: string | undefined, ifRange: string | undefined): Answer {
  const headers: Record<string, string> = {
    'Content-Disposition': 'attachment',
    'Content-Security-Policy': "default-src 'none'; sandbox; frame-ancestors 'none'",
    ...download.headers,
  }
  const { type, bytes } = download
  if (!Buffer.isBuffer(bytes)) return { status: 200, type, body: bytes, headers }
  headers['Accept-Ranges'] = 'bytes'
  const wanted = range === undefined || !holds(ifRange, headers) ? undefined : readRange(range, bytes.length)
  if (!wanted) return { status: 200, type, body: bytes, headers }
  headers['Content-Range'] = `bytes ${wanted.first}-${wanted.last}/${bytes.length}`
  return { status: 206, type, body: bytes.subarray(wanted.first, wanted.last + 1), headers }
}

/** `If-Range` requests the whole if it has changed (RFC 9110 13.1.5). */
function holds(ifRange: string | undefined, headers: Record<string, string>): boolean {
  return ifRange === undefined || (ifRange === headers.ETag && !ifRange.startsWith('W/')) || ifRange === headers['Last-Modified']
}

/** First and last byte; undefined for a header that is not understood, which means the whole. */
function readRange(range: string, size: number): { first: number; last: number } | undefined {
  const [, from, to] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(range.replaceAll(' ', '')) ?? []
  if (from === undefined || to === undefined || (from === '' && to === '')) return undefined
  const first = from === '' ? Math.max(0, size - Number(to)) : Number(from)
  const last = from === '' || to === '' ? size - 1 : Math.min(Number(to), size - 1)
  if (from !== '' && to !== '' && Number(to) < first) return undefined
  if (first > last) {
    throw new Fault('invalid_request', `The range is outside the ${size} bytes of the file.`, {
      code: 'range_not_satisfiable',
      param: 'Range',
    })
  }
  return { first, last }
}
