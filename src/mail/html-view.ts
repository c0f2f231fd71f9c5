import { notFound } from '../core/fault.ts'
import type { Caller } from '../core/scopes.ts'
import type { Download } from '../http/route.ts'
import type { EmailDetail } from './email-rows.ts'
import type { Emails } from './emails.ts'
import type { Examiner } from './workers/examiner.ts'
import { sanitize } from '../message/sanitize.ts'
import type { Attachment } from './model.ts'

/** Images of the message itself that are put into its sheet, and how many octets they may have together. */
const most = 20
const maxOctets = 4 * 1024 * 1024

/** Characters of them that are written into one sheet, however often it names them. */
const maxWritten = 2 * maxOctets

const shownTypes = /^image\/(?:png|jpeg|gif|webp)$/

/**
 * Nothing runs, nothing is asked of anybody, and links open apart: even where the HTML was read wrongly. Whoever shows it needs a frame on a
 * page of the box.
 */
function policy(remote: boolean): string {
  return [
    "default-src 'none'",
    "style-src 'unsafe-inline'",
    `img-src data:${remote ? ' https:' : ''}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'self'",
    'sandbox allow-popups allow-popups-to-escape-sandbox',
  ].join('; ')
}

/** The HTML of a message as a page of its own, to be looked at. */
export class HtmlView {
  readonly #emails: Pick<Emails, 'get' | 'row' | 'octets'>
  readonly #examiner: Examiner

  constructor(parts: { emails: Emails; examiner: Examiner }) {
    this.#emails = parts.emails
    this.#examiner = parts.examiner
  }

  /** `remote` lets images and fonts of others be fetched by whoever looks. Throws Fault 404 for a message without HTML. */
  async of(caller: Caller, identityId: string, id: string, remote: boolean): Promise<Download> {
    const { body_html } = await this.#emails.get(caller, identityId, id)
    if (body_html === null) throw notFound('HTML of this e-mail')
    const inline = await this.#images(caller, identityId, id, body_html)
    // one image may be named a thousand times, and is written each time
    let left = maxWritten
    const image = (source: string): string | undefined => {
      const [, cid] = /^cid:(.+)$/i.exec(source) ?? []
      if (cid !== undefined) {
        const found = inline.get(decoded(cid))
        if (!found || found.length > left) return undefined
        left -= found.length
        return found
      }
      if (/^data:image\/(?:png|jpeg|gif|webp);base64,/i.test(source)) return source
      return remote && /^https?:\/\//i.test(source) ? source.replace(/^http:/i, 'https:') : undefined
    }
    const inner = await sanitize(body_html, image, remote)
    const head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>E-mail</title>'
    return {
      type: 'text/html; charset=utf-8',
      bytes: Buffer.from(`<!doctype html><html lang="und"><head>${head}</head><body>${inner}</body></html>`),
      headers: {
        'Content-Disposition': 'inline',
        'Content-Security-Policy': policy(remote),
        'X-Frame-Options': 'SAMEORIGIN',
        'X-DNS-Prefetch-Control': 'off',
      },
    }
  }

  /** By content id, as data: URLs, for a sheet that may fetch nothing. Those that cannot be had any more are left out. */
  async #images(caller: Caller, identityId: string, id: string, html: string): Promise<Map<string, string>> {
    if (!html.includes('cid:')) return new Map()
    const row = await this.#emails.row(caller, identityId, id)
    const { attachments } = JSON.parse(row.detail) as EmailDetail
    const wanted: (Attachment & { content_id: string })[] = []
    let octets = 0
    for (const one of attachments) {
      const { content_id, content_type, size } = one
      if (content_id === null || !shownTypes.test(content_type)) continue
      octets += size
      if (octets > maxOctets || wanted.length === most) break
      wanted.push({ ...one, content_id })
    }
    if (wanted.length === 0 || row.raw_expired_at !== null) return new Map()
    const raw = await this.#emails.octets(row)
    const found = new Map<string, string>()
    for (const { content_id, content_type, index } of wanted) {
      const part = await this.#examiner.attachment(raw, index, caller.account_id)
      if (part) found.set(content_id, `data:${content_type};base64,${part.content.toString('base64')}`)
    }
    return found
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
