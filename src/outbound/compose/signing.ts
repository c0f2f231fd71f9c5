import { createHash, type KeyObject, sign as signBytes } from 'node:crypto'
import { promisify } from 'node:util'
import type { Clock } from '../../core/clock.ts'
import { Turns } from '../../core/work/paced-work.ts'
import type { Domains, DkimKey } from '../../domains/domains.ts'

/**
 * The fields that a signature covers, each once more than it occurs (over-signing): a second one, or one that was not there, put in on the way,
 * breaks the signature (RFC 6376 8.15).
 */
const covered = [
  'from',
  'reply-to',
  'subject',
  'date',
  'to',
  'cc',
  'message-id',
  'in-reply-to',
  'references',
  'mime-version',
  'content-type',
  'content-transfer-encoding',
  'auto-submitted',
]

/**
 * The same where they occur; mailing lists add them on the way. RFC 8058 4 requires the two of an offer to unsubscribe by one click, RFC 6376 5.4.1
 * names the others.
 */
const coveredIfPresent = [
  'list-id',
  'list-help',
  'list-unsubscribe',
  'list-unsubscribe-post',
  'list-subscribe',
  'list-post',
  'list-owner',
  'list-archive',
]

const signInThread = promisify<string | null, Uint8Array, KeyObject, Buffer>(signBytes)

/**
 * Signs what leaves the box with the keys of its sender's domain (DKIM, RFC 6376 and RFC 8463). Implemented here, as the library cannot
 * cover absent fields; it and others verify what this writes.
 */
export class DkimSigner {
  readonly #domains: Pick<Domains, 'signingKeys'>
  readonly #clock: Clock

  constructor(deps: { domains: Pick<Domains, 'signingKeys'>; clock: Clock }) {
    this.#domains = deps.domains
    this.#clock = deps.clock
  }

  /**
   * The DKIM-Signature fields of a message, whole lines with CRLF, one for each key of the domain; empty when it has none yet. The message
   * must have CRLF line ends only.
   */
  async sign(domain: string, raw: Buffer): Promise<string> {
    const keys = await this.#domains.signingKeys(domain)
    if (keys.length === 0) return ''
    const end = raw.indexOf('\r\n\r\n')
    const header = end < 0 ? raw : raw.subarray(0, end + 2)
    const { names, canonical } = coveredFields(header.toString('latin1'))
    const common = {
      domain,
      names,
      canonical,
      bodyHash: await bodyHash(end < 0 ? Buffer.alloc(0) : raw.subarray(end + 4)),
      time: Math.floor(this.#clock.now() / 1000),
    }
    const fields = await Promise.all(keys.map((key) => signature(key, common)))
    return fields.join('')
  }

  /**
   * The header fields `trace`, which a message begins with, with other signatures in place of those that they begin with; undefined when the keys
   * of these are still active, or when there are none.
   */
  async renewed(domain: string, trace: string, message: Buffer): Promise<string | undefined> {
    const signatures = /^(?:DKIM-Signature:.*\r\n(?:[ \t].*\r\n)*)+/.exec(trace)?.[0]
    if (signatures === undefined) return undefined
    const active = (await this.#domains.signingKeys(domain)).map(({ selector }) => selector)
    const used = [...signatures.matchAll(/\ts=([^;]{1,63});/g)].map(([, selector = '']) => selector)
    if (active.length === 0 || used.every((selector) => active.includes(selector))) return undefined
    const fresh = await this.sign(domain, message.subarray(Buffer.byteLength(signatures)))
    return `${fresh}${trace.slice(signatures.length)}`
  }
}

interface Signed {
  domain: string
  /** The field names in `h=`. */
  names: string[]
  /** The fields it names, in that order, in relaxed form. */
  canonical: string
  bodyHash: string
  /** Seconds since the Unix epoch. */
  time: number
}

async function signature({ selector, algorithm, private_key }: DkimKey, signed: Signed): Promise<string> {
  const { domain, names, canonical, bodyHash: hash, time } = signed
  const field = [
    `DKIM-Signature: v=1; a=${algorithm}; c=relaxed/relaxed; d=${domain};`,
    `\ts=${selector}; t=${time};`,
    `\th=${folded(names)};`,
    `\tbh=${hash};`,
    '\tb=',
  ].join('\r\n')
  // its own field is covered with an empty b= and without the line end (RFC 6376 3.7)
  const data = Buffer.from(canonical + relaxedField(field).slice(0, -2), 'latin1')
  const isRsa = algorithm === 'rsa-sha256'
  // RFC 8463 3: PureEdDSA over the hash
  const bytes = await signInThread(
    isRsa ? 'sha256' : null,
    isRsa ? data : createHash('sha256').update(data).digest(),
    private_key,
  )
  const lines = bytes.toString('base64').match(/.{1,72}/g) ?? []
  return `${field}${lines.join('\r\n\t')}\r\n`
}

/** The last of the fields with a name comes first (RFC 6376 5.4.2). */
function coveredFields(header: string): { names: string[]; canonical: string } {
  const fields = header.split(/(?<=\r\n)(?![ \t])/).toReversed()
  const names: string[] = []
  let canonical = ''
  const byName = Map.groupBy(fields, (field) => field.slice(0, field.indexOf(':')).trimEnd().toLowerCase())
  for (const name of [...covered, ...coveredIfPresent.filter((one) => byName.has(one))]) {
    for (const field of byName.get(name) ?? []) {
      names.push(name)
      canonical += relaxedField(field)
    }
    names.push(name)
  }
  return { names, canonical }
}

/** RFC 6376 3.4.2. */
function relaxedField(field: string): string {
  const colon = field.indexOf(':')
  const value = field
    .slice(colon + 1)
    .replaceAll('\r\n', '')
    .replaceAll(/[ \t]+/g, ' ')
  return `${field.slice(0, colon).trimEnd().toLowerCase()}:${value.replace(/^ | $/g, '')}\r\n`
}

/** RFC 6376 3.4.4, in base64: empty lines at the end do not count. In one pass, which yields to other work. */
async function bodyHash(body: Buffer): Promise<string> {
  const turns = new Turns()
  let end = body.length
  while (end > 0 && isSpace(body[end - 1]!)) {
    end -= 1
    if (end % slice === 0 && turns.due) await turns.yield()
  }
  const hash = createHash('sha256')
  // the blank that one slice ends with is written with the next
  const relaxed = Buffer.allocUnsafe(slice + 1)
  let isAfterBlank = false
  for (let at = 0; at < end;) {
    const stop = Math.min(at + slice, end)
    let length = 0
    for (; at < stop; at += 1) {
      const octet = body[at]!
      const isWithin = octet !== tab && octet !== space
      if (isWithin) {
        if (isAfterBlank && !(octet === cr && body[at + 1] === lf)) relaxed[length++] = space
        relaxed[length++] = octet
      }
      isAfterBlank = !isWithin
    }
    hash.update(relaxed.subarray(0, length))
    if (turns.due) await turns.yield()
  }
  if (end > 0) hash.update('\r\n')
  return hash.digest('base64')
}

const [tab, lf, cr, space] = [0x09, 0x0a, 0x0d, 0x20]

function isSpace(octet: number): boolean {
  return octet === space || octet === lf || octet === cr || octet === tab
}

/** Bytes of a body that are processed before yielding to the event loop. */
const slice = 64 * 1024

function folded(names: string[]): string {
  let line = ''
  const lines: string[] = []
  for (const [index, name] of names.entries()) {
    const piece = index === names.length - 1 ? name : `${name}:`
    if (line.length + piece.length > 70) {
      lines.push(line)
      line = ''
    }
    line += piece
  }
  return [...lines, line].join('\r\n\t')
}
