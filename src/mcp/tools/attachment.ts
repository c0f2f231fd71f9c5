import { buffer } from 'node:stream/consumers'
import { Fault } from '../../core/fault.ts'
import type { Answer } from '../../http/route.ts'
import type { AttachmentWithUrl } from '../../mail/model.ts'
import { AnswerText } from '../answer-text.ts'
import { tool, type Tool, type ToolAnswer } from '../tool.ts'

const place = 'GET /identities/:id/emails/:email_id/attachments/:index'
const download = 'GET /attachments/:email_id/:index'

/** The largest attachment that is read as text, in bytes. */
const largest = 1024 * 1024

const readable = /^(?:text\/(?!html|rtf)[\w.+-]+|application\/(?:json|xml|[\w.]+\+(?:json|xml)))$/

export const attachmentTool: Tool = tool('read_attachment', {
  description: 'Read an attachment as text, or get a link to it.',
  annotations: { readOnlyHint: true, openWorldHint: false },
  routes: [place],
  example: { message_id: 'email_01jd3v8m2ef1pbx9mz5k7q4w6a', index: 0 },
  names: { email_id: 'message_id' },
  run: async ({ call, answer }, { message_id, index, as, offset }) => {
    const file = await call<AttachmentWithUrl>(place, { params: { email_id: message_id, index: String(index) } })
    if (as === 'link') return linkTo(file, '')
    if (!readable.test(file.content_type)) return linkTo(file, 'It cannot be read as text here. ')
    if (file.size > largest) return linkTo(file, `It has more than ${largest} bytes. `)
    const query = Object.fromEntries(new URL(file.url).searchParams)
    const bytes = await bytesOf(await answer(download, { params: { email_id: message_id, index: String(index) }, query }))
    if (bytes.includes(0)) return linkTo(file, 'It is not text. ')
    return textOf(file, bytes.toString(), offset)
  },
})

function textOf(file: AttachmentWithUrl, body: string, offset: number): ToolAnswer {
  const text = new AnswerText()
  text.line(`Attachment ${file.index}, ${file.size} bytes`)
  text.foreign('Name: ', file.filename)
  const next_offset = text.page(body, offset)
  const more = next_offset === null ? [] : [`More: offset ${next_offset} of ${body.length}`]
  return { text: text.toString(more), data: { index: file.index, size: file.size, next_offset } }
}

function linkTo(file: AttachmentWithUrl, why: string): ToolAnswer {
  const { url, expires_at, index, size } = file
  const text = new AnswerText()
  text.line(`${why}Link, without a key until ${expires_at}: ${url}`)
  text.foreign('Name: ', file.filename)
  const mimeType = /^[\w.+-]{1,60}\/[\w.+-]{1,60}$/.test(file.content_type) ? file.content_type : 'application/octet-stream'
  // the name is the sender's, and stands in the fence
  const link = { uri: url, name: `attachment ${index}`, mimeType }
  return { text: text.toString(), data: { index, size }, link }
}

async function bytesOf({ body }: Answer): Promise<Buffer> {
  if (typeof body === 'string') return Buffer.from(body)
  if (Buffer.isBuffer(body)) return body
  const bytes = await buffer(body)
  if (bytes.length > largest)
    throw new Fault('invalid_request', 'The attachment is too large to be read as text.', { code: 'too_large' })
  return bytes
}
