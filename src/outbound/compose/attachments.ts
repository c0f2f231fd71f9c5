import { invalid } from '../../core/fault.ts'
import { Turns } from '../../core/work/paced-work.ts'
import { type Outside, Unreachable } from '../../net/outside.ts'
import type { OutgoingAttachment } from './compose.ts'
import type { WorkShare } from '../../net/work-limiter.ts'
import { largestMessage, type NewAttachment } from '../model.ts'

/** Timeout in milliseconds for all URLs of one message together. */
const timeout = 30_000

/** Maximum bytes of attachments: base64 makes four of three bytes, and adds a line end every 76. */
const maxBytes = Math.floor((largestMessage * 3 * 76) / (4 * 78))

/** How URLs are fetched. */
interface FetchOptions {
  outside: Outside
  share: WorkShare
  signal: AbortSignal
}

/**
 * The attachments of a message, decoded, or fetched from their URLs. The text of each is taken out of `inputs`: it is longer than what it says, and the call
 * holds on to it. Throws Fault invalid_request with the path of the wrong one,
 * `attachments[1].content`, and rate_limited when too much is being fetched.
 */
export async function attachmentsOf(inputs: readonly NewAttachment[], options: FetchOptions): Promise<OutgoingAttachment[]> {
  // everything that needs no request is checked first
  const turns = new Turns()
  const files: RequestedFile[] = []
  for (const [index, input] of inputs.entries()) {
    const place = `attachments[${index}]`
    files.push({ input, place, file: await declared(input, place, turns) })
    delete input.content
  }
  const available = maxBytes - files.reduce((sum, { file }) => sum + file.content.length, 0)
  if (available < 0) throw tooLarge(files[0]!.place)
  const remote = files.filter(({ input }) => input.url !== undefined)
  if (remote.length > 0) await options.share.run(options.signal, () => fetchEach(remote, available, options))
  return files.map(({ file }) => file)
}

/** An attachment with its input and path. */
interface RequestedFile {
  input: NewAttachment
  place: string
  file: OutgoingAttachment
}

async function fetchEach(files: readonly RequestedFile[], max: number, options: FetchOptions): Promise<void> {
  let available = max
  const end = Date.now() + timeout
  for (const { input, file, place } of files) {
    const { body, type } = await fetched(input.url!, `${place}.url`, { ...options, available, deadline: end - Date.now() })
    file.content = body
    available -= body.length
    file.content_type ??= type !== undefined && mediaType.test(type) ? type : null
  }
}

async function declared(input: NewAttachment, place: string, turns: Turns): Promise<OutgoingAttachment> {
  const { filename, content_type: type, content, url, content_id } = input
  if ((content === undefined) === (url === undefined)) throw invalid(place, `${place} must have either content or url.`)
  if (unwritable.test(filename)) throw invalid(`${place}.filename`, `${place}.filename contains a control character.`)
  if (type !== undefined && !mediaType.test(type)) {
    throw invalid(`${place}.content_type`, `${place}.content_type must be a media type such as application/pdf, not multipart.`)
  }
  const id = content_id?.replace(/^<(.*)>$/, '$1')
  if (id !== undefined && !/^[!-;=?-~]+$/.test(id)) {
    throw invalid(`${place}.content_id`, `${place}.content_id must be printable ASCII without spaces and angle brackets.`)
  }
  return {
    filename,
    content_type: type ?? null,
    content: content === undefined ? Buffer.alloc(0) : await decoded(content, `${place}.content`, turns),
    content_id: id ?? null,
  }
}

/** Strictly RFC 4648 4: no line ends, no other alphabet, padded, nothing in the bits that are left over. */
async function decoded(text: string, param: string, turns: Turns): Promise<Buffer> {
  const bytes = Buffer.from(text, 'base64')
  if (await isEncoding(text, bytes, turns)) return bytes
  const hint = text.startsWith('data:') ? 'without a data: prefix' : 'padded, on one line, in the alphabet with + and /'
  throw invalid(param, `${param} is not base64 (RFC 4648), ${hint}.`, 'invalid_base64')
}

/** Bytes that are encoded at once, a multiple of three: encoding the whole would double the text in memory. */
const piece = 3 * 256 * 1024

async function isEncoding(text: string, bytes: Buffer, turns: Turns): Promise<boolean> {
  if (text.length !== Math.ceil(bytes.length / 3) * 4) return false
  for (let at = 0; at < bytes.length; at += piece) {
    if (turns.due) await turns.yield()
    const place = (at / 3) * 4
    if (bytes.toString('base64', at, at + piece) !== text.slice(place, place + (piece / 3) * 4)) return false
  }
  return true
}

async function fetched(
  url: string,
  param: string,
  { outside, share, signal, available, deadline }: FetchOptions & { available: number; deadline: number },
): Promise<{ type: string | undefined; body: Buffer }> {
  if (deadline <= 0)
    throw invalid(param, `${param} was not fetched: all attachments together took more than ${timeout / 1000} s.`)
  try {
    const { status, headers, body } = await outside.get(url, { signal, limit: available, deadline, take: share.reserve })
    if (status !== 200) throw new Unreachable(`it answered ${status}`)
    const [encoding = 'identity'] = [headers['content-encoding']].flat()
    // decompressed it could be a thousand times as large
    if (encoding.toLowerCase() !== 'identity')
      throw new Unreachable(`it is compressed (${encoding.slice(0, 40)}), which was not requested`)
    return { type: [headers['content-type']].flat()[0], body }
  } catch (error) {
    if (error instanceof Unreachable) throw invalid(param, `${param} could not be fetched: ${error.message}.`, 'url_unreachable')
    throw error
  }
}

function tooLarge(place: string): Error {
  return invalid(place, 'The attachments do not fit into a message of 25 MiB.', 'message_too_large')
}

// eslint-disable-next-line no-control-regex -- these are what is looked for
const unwritable = /[\0-\x1f\x7f]/

/** A type and its parameters (RFC 2045 5.1), no multipart. */
const mediaType =
  /^(?!multipart\/)[\w!#$&^.+-]{1,127}\/[\w!#$&^.+-]{1,127}(?: ?; ?[\w!#$&^.+-]+=(?:[\w!#$&^.+-]+|"[ !#-[\]-~]*"))*$/i
