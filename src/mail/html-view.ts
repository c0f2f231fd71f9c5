import { notFound } from '../core/fault.ts'
import { largeWork } from '../core/work/long-work.ts'
import type { Caller } from '../core/scopes.ts'
import { percentDecoded } from '../core/text.ts'
import type { Download } from '../http/route.ts'
import type { AttachmentReader, Decode } from './workers/attachment-reader.ts'
import type { StoredEmail } from './email-rows.ts'
import type { Emails } from './emails.ts'
import { sanitize } from '../message/sanitize.ts'
import type { Attachment } from './model.ts'

/** Inline images that are embedded in the page, and their maximum total size in bytes. */
const maxImages = 20
const maxImageBytes = 4 * 1024 * 1024

/** Characters of data URLs in one page, including repeated images. */
const maxDataUrls = 2 * maxImageBytes

const imageTypes = /^image\/(?:png|jpeg|gif|webp)$/

/** Elements in one another do not become ever smaller, and each text is wrapped in its box, which has room for a letter where texts may be from right to left. */
const ownStyle =
  '<style>body{color:#000;background:#fff}small,sub,sup,big{font-size:13px}*{overflow-wrap:anywhere}pre{white-space:pre-wrap}[dir],[dir] *{min-width:1.5em}</style>'

/** How a page is to be used: `remote` allows external images; `measure` lets the page around it read its size, without external images and windows. */
export interface Look {
  remote: boolean
  measure: boolean
}

/**
 * A Content-Security-Policy under which nothing runs, nothing is fetched, and links open in a new window, even if sanitizing failed. The page can
 * only be displayed in a frame on a page of this box. It has an origin of its own, so that nothing in it carries the session; with `measure` it has
 * that of the box, and can go nowhere.
 */
function policy({ remote, measure }: Look): string {
  return [
    "default-src 'none'",
    "style-src 'unsafe-inline'",
    `img-src data:${remote ? ' https:' : ''}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'self'",
    `sandbox ${measure ? 'allow-same-origin' : 'allow-popups allow-popups-to-escape-sandbox'}`,
  ].join('; ')
}

/**
 * Renders the HTML of a message as a page. Throws Fault 404 for a message without HTML, 429
 * `too_much_at_once` when too many large messages are being read.
 */
export async function htmlView(
  { emails, reader }: { emails: Emails; reader: AttachmentReader },
  caller: Caller,
  identityId: string,
  id: string,
  { signal, remote, measure }: Look & { signal: AbortSignal },
): Promise<Download> {
  const look = { remote: remote && !measure, measure }
  const row = await emails.row(caller, identityId, id)
  return reader.read({ row, account: caller.account_id, signal }, async (decode) => {
    const { body_html } = await emails.get(caller, identityId, id)
    if (body_html === null) throw notFound('HTML of this e-mail')
    const images = await inlineImages(emails, row, body_html, decode)
    // each of its texts has a style of its own
    return largeWork(caller.account_id, 16 * body_html.length, () => renderPage(body_html, images, look), signal)
  })
}

async function renderPage(html: string, inline: Map<string, string>, look: Look): Promise<Download> {
  // an image may be referenced many times, and is embedded each time
  let remaining = maxDataUrls
  const image = (source: string): string | undefined => {
    const [, cid] = /^cid:(.+)$/i.exec(source) ?? []
    if (cid !== undefined) {
      const found = inline.get(percentDecoded(cid) ?? cid)
      if (!found || found.length > remaining) return undefined
      remaining -= found.length
      return found
    }
    if (/^data:image\/(?:png|jpeg|gif|webp);base64,/i.test(source)) return source
    return look.remote && /^https?:\/\//i.test(source) ? source.replace(/^http:/i, 'https:') : undefined
  }
  return {
    type: 'text/html; charset=utf-8',
    bytes: Buffer.from(pageOf(await sanitize(html, image))),
    headers: {
      'Content-Disposition': 'inline',
      'Content-Security-Policy': policy(look),
      'X-Frame-Options': 'SAMEORIGIN',
      'X-DNS-Prefetch-Control': 'off',
    },
  }
}

/** The document in which a sanitized message is displayed. */
export function pageOf(body: string): string {
  const head = `<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>E-mail</title>${ownStyle}`
  return `<!doctype html><html lang="und"><head>${head}</head><body>${body}</body></html>`
}

/** Inline images by Content-ID, as data: URLs. Those no longer available are left out. */
async function inlineImages(emails: Emails, row: StoredEmail, html: string, decode: Decode): Promise<Map<string, string>> {
  if (!html.includes('cid:')) return new Map()
  const attachments = await emails.attachmentsOf(row)
  const wanted: (Attachment & { content_id: string })[] = []
  let bytes = 0
  for (const one of attachments) {
    const { content_id, content_type, size } = one
    if (content_id === null || !imageTypes.test(content_type)) continue
    bytes += size
    if (bytes > maxImageBytes || wanted.length === maxImages) break
    wanted.push({ ...one, content_id })
  }
  if (wanted.length === 0 || row.raw_expired_at !== null) return new Map()
  const contents = await decode(wanted.map(({ index }) => index))
  const found = new Map<string, string>()
  for (const { content_id, content_type, index } of wanted) {
    const content = contents.get(index)?.content
    if (content) found.set(content_id, `data:${content_type};base64,${content.toString('base64')}`)
  }
  return found
}
