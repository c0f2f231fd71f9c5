import { Fault } from '../../core/fault.ts'
import type { AttachmentText, AttachmentWithUrl } from '../../mail/model.ts'
import { AnswerText } from '../answer-text.ts'
import { tool, type Tool, type ToolAnswer, type ToolContext } from '../tool.ts'

const place = 'GET /identities/:id/emails/:email_id/attachments/:index'
const contents = `${place}/text`

/** The longest piece of a text, in characters: it fits into an answer beside the name. */
const longestPiece = 7000

/** Why an attachment has no text, by the code of the refusal. */
const withoutText = new Map([
  ['attachment_not_text', 'It has no text that can be read here.'],
  ['attachment_unreadable', 'It is damaged or encrypted.'],
  ['attachment_too_large_for_text', 'It is too large to be read as text.'],
])

export const attachmentTool: Tool = tool('read_attachment', {
  description: 'Read an attachment (PDF, DOCX, XLSX, HTML, CSV) as text, or get a link.',
  annotations: { readOnlyHint: true, openWorldHint: false },
  routes: [place, contents],
  example: { message_id: 'email_01jd3v8m2ef1pbx9mz5k7q4w6a', index: 0 },
  names: { email_id: 'message_id' },
  run: async ({ call }, { message_id, index, as, offset }) => {
    const params = { email_id: message_id, index: String(index) }
    if (as === 'link') return link(call, params)
    try {
      return textOf(
        await call<AttachmentText>(contents, { params, query: { offset: String(offset), limit: String(longestPiece) } }),
      )
    } catch (error) {
      const why = error instanceof Fault ? withoutText.get(error.code ?? '') : undefined
      if (why === undefined) throw error
      return link(call, params, `${why} `)
    }
  },
})

function textOf({
  index,
  filename,
  format,
  pages,
  text: piece,
  offset,
  next_offset: next,
  characters,
  truncated,
}: AttachmentText): ToolAnswer {
  const text = new AnswerText()
  const scanned = characters === 0 && format === 'pdf' ? ' without text: it may be scanned, get it as a link' : ''
  text.line(`Attachment ${index}, ${format}${pages === null ? '' : `, ${pages} pages`}${scanned}`)
  text.foreign('Name: ', filename)
  const fitted = text.page(piece, 0)
  const next_offset = fitted === null ? next : offset + fitted
  const last = next_offset === null ? [] : [`More: offset ${next_offset} of ${characters}`]
  if (next_offset === null && truncated) last.push('It has more text than can be read here: get it as a link.')
  return { text: text.toString(last), data: { index, next_offset } }
}

async function link(call: ToolContext['call'], params: Record<string, string>, why = ''): Promise<ToolAnswer> {
  const { url, expires_at, index, size, filename, content_type } = await call<AttachmentWithUrl>(place, { params })
  const text = new AnswerText()
  text.line(`${why}Link, without a key until ${expires_at}: ${url}`)
  text.foreign('Name: ', filename)
  const mimeType = /^[\w.+-]{1,60}\/[\w.+-]{1,60}$/.test(content_type) ? content_type : 'application/octet-stream'
  // the name is the sender's, and stands in the fence
  return { text: text.toString(), data: { index, size }, link: { uri: url, name: `attachment ${index}`, mimeType } }
}
