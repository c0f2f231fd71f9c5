import { detached } from '../../core/memory.ts'
import type { Page } from '../../core/shapes.ts'
import { upToLength } from '../../core/text.ts'
import type { Email, EmailRow } from '../../mail/model.ts'
import type { Sms } from '../../sms/model.ts'
import type { WaitAnswer } from '../../timeline/model.ts'
import { AnswerText, longestAnswer } from '../answer-text.ts'
import { present, tool, type Tool, type ToolAnswer, type ToolContext } from '../tool.ts'
import {
  attachmentLines,
  type Channel,
  channelOf,
  emailHead,
  emailRowLines,
  linkLines,
  messageParams,
  messageRoute,
  smsRowLines,
} from './messages.ts'

const reads = { readOnlyHint: true, openWorldHint: false }
const wait = 'GET /identities/:id/wait'
const list = 'GET /identities/:id/emails'
const search = 'GET /identities/:id/emails/search'
const texts = 'GET /identities/:id/sms'

/** Characters of the text of a message that a wait returns. */
const longestWaited = 2500

export const readingTools: Tool[] = [
  tool('wait_for_message', {
    description: 'Wait for the next e-mail or SMS; returns its codes and links. Call again with since if timed out.',
    // it skips what it has returned before
    annotations: reads,
    routes: [wait],
    example: { from: 'github.com', timeout: 30 },
    names: { subject_contains: 'subject' },
    run: async ({ call }, { from, subject, channel, since, timeout }) => {
      const query = present({ from, subject_contains: subject, channel, since, timeout: String(timeout) })
      return waited(await call<WaitAnswer>(wait, { query }))
    },
  }),
  tool('list_messages', {
    description: 'List or search messages, newest first.',
    annotations: reads,
    routes: [list, texts],
    example: { unread: true, limit: 10 },
    run: async (context, input) => {
      const channel: Channel = input.channel ?? (context.allowed(list) ? 'email' : 'sms')
      return channel === 'sms' ? listTexts(context, input) : listEmails(context, input)
    },
  }),
  tool('read_message', {
    description: 'Read an e-mail or SMS: verdict on the sender, text, links, attachments.',
    annotations: reads,
    routes: [messageRoute('GET', 'email'), messageRoute('GET', 'sms')],
    example: { id: 'email_01jd3v8m2ef1pbx9mz5k7q4w6a' },
    names: { email_id: 'id', sms_id: 'id' },
    run: async ({ call }, { id, full, offset }) => {
      const given = { params: messageParams(id) }
      return channelOf(id) === 'sms'
        ? readText(await call<Sms>(messageRoute('GET', 'sms'), given), offset)
        : readEmail(await call<Email>(messageRoute('GET', 'email'), given), full, offset)
    },
  }),
  tool('read_thread', {
    description: 'Read a conversation: what each of its last messages added, oldest first.',
    annotations: reads,
    routes: [list],
    example: { id: 'thread_01jd3v8m2ef1pbx9mz5k7q4w6a', last: 5 },
    names: { thread_id: 'id', email_id: 'id' },
    run: readThread,
  }),
]

function waited({ timed_out, since, item, codes, links }: WaitAnswer): ToolAnswer {
  const data = { timed_out, since, codes, message_id: item?.id ?? null }
  if (item === null) {
    const again = since === null ? '' : ` with since ${since}`
    return { text: `Timed out: no such message came. Call wait_for_message again${again}.`, data }
  }
  const text = new AnswerText()
  if (since !== null) text.line(`since: ${since}`)
  if (item.type === 'sms') smsHead(text, item)
  else emailHead(text, item)
  const omitted = linkLines(text, links)
  const body = item.type === 'sms' ? item.body : item.text
  const more = text.page(body, 0, longestWaited) !== null || omitted > 0
  return { text: text.toString(more ? [`There is more: read_message ${JSON.stringify({ id: item.id })}`] : []), data }
}

interface ListInput {
  query?: string | undefined
  unread?: boolean | undefined
  sent?: boolean | undefined
  limit: number
  cursor?: string | undefined
}

async function listEmails({ call }: ToolContext, { query, unread, sent, limit, cursor }: ListInput): Promise<ToolAnswer> {
  const asked = { query, unread: unread?.toString(), direction: sent ? 'outbound' : undefined, cursor }
  const route = query === undefined ? list : search
  return listed(
    (most) => call<Page<EmailRow>>(route, { query: present({ ...asked, limit: String(most) }) }),
    limit,
    emailRowLines,
  )
}

async function listTexts({ call }: ToolContext, { query, unread, sent, limit, cursor }: ListInput): Promise<ToolAnswer> {
  if (query !== undefined)
    return { text: 'query searches e-mails. List text messages without it: list_messages {"channel":"sms"}' }
  const asked = { unread: unread?.toString(), direction: sent ? 'outbound' : 'inbound', cursor }
  return listed((most) => call<Page<Sms>>(texts, { query: present({ ...asked, limit: String(most) }) }), limit, smsRowLines)
}

function readEmail(email: Email, full: boolean, offset: number): ToolAnswer {
  const text = new AnswerText()
  const last: string[] = []
  if (offset === 0) {
    emailHead(text, email)
    const links = linkLines(text, email.links)
    const files = attachmentLines(text, email.attachments)
    if (links > 0) last.push(`${links} more links are in the text or too long.`)
    if (files > 0) last.push(`${files} more attachments: read_attachment by index.`)
    text.foreign('', '---')
  } else text.line(`${email.id} from character ${offset}`)
  // a text part that says what the HTML does not show is not what a person sees
  const whole = email.screening?.reasons.some(({ kind }) => kind === 'alternative_differs') ? null : email.body_text
  // the text part may say less than the HTML
  const body = full && whole !== null && whole.length > email.text.length ? whole : email.text
  const quoted = !full && (whole?.length ?? 0) > email.text.length + 20
  if (quoted) last.push('Quoted text was left out: full shows it.')
  return paged(text, { body, offset, full, last, id: email.id, codes: email.codes })
}

function readText(sms: Sms, offset: number): ToolAnswer {
  const text = new AnswerText()
  smsHead(text, sms)
  const last = sms.media.length === 0 ? [] : [`${sms.media.length} pictures are not shown here.`]
  return paged(text, { body: sms.body, offset, full: false, last, id: sms.id, codes: sms.codes })
}

function smsHead(text: AnswerText, { id, direction, status, received_at, codes, from, to }: Sms): void {
  text.line(`${id}, SMS, ${direction}, ${status}, ${received_at}${codes.length === 0 ? '' : ` codes: ${codes.join(', ')}`}`)
  text.foreign('From: ', from)
  text.foreign('To: ', to)
}

interface Paged {
  body: string
  offset: number
  /** The body is that of a call with `full`, and so are the offsets in it. */
  full: boolean
  last: string[]
  id: string
  codes: string[]
}

function paged(text: AnswerText, { body, offset, full, last, id, codes }: Paged): ToolAnswer {
  const next_offset = text.page(body, offset)
  const more = next_offset === null ? [] : [`More: ${full ? 'full, ' : ''}offset ${next_offset} of ${body.length}`]
  return { text: text.toString([...last, ...more]), data: { id, codes, next_offset } }
}

async function readThread({ call }: ToolContext, { id, last }: { id: string; last: number }): Promise<ToolAnswer> {
  const thread_id = channelOf(id) === 'email' && id.startsWith('email_') ? await threadOf(call, id) : id
  const { rows, has_more } = await lastOf(call, thread_id, last)
  const text = new AnswerText()
  const share = Math.floor(text.left / Math.max(1, rows.length)) - 250
  const cut: string[] = []
  for (const row of rows) {
    text.line(
      `${row.id} ${row.received_at} ${row.direction}${row.verified_domain === null ? '' : `, verified sender: ${row.verified_domain}`}`,
    )
    text.foreign(`--- ${row.id} from `, row.from, 150)
    if (text.page(row.text ?? '', 0, Math.max(100, share)) !== null) cut.push(row.id)
  }
  const notes = cut.map((one) => `Cut: read_message ${JSON.stringify({ id: one })}`)
  if (has_more) notes.push('There are older messages: use a larger last.')
  if (rows.length === 0) text.line('No messages in this conversation.')
  return { text: text.toString(notes), data: { thread_id, ids: rows.map((row) => row.id), has_more } }
}

/** The last messages of a thread, oldest first, with as much of their texts as an answer can have: in one call, unless they are long. */
async function lastOf(
  call: ToolContext['call'],
  thread_id: string,
  last: number,
): Promise<Pick<Page<EmailRow>, 'has_more'> & { rows: EmailRow[] }> {
  const rows: EmailRow[] = []
  let cursor: string | undefined
  let more = true
  while (more && rows.length < last) {
    const query = { thread_id, direction: 'all', spam: 'false', include: 'body', limit: String(last - rows.length), cursor }
    const page = await call<Page<EmailRow>>(list, { query: present(query) })
    for (const { body_text: _, body_html: __, text = '', ...row } of page.data)
      rows.unshift({ ...row, text: detached(upToLength(text, longestAnswer)) })
    more = page.has_more
    cursor = page.next_cursor ?? undefined
  }
  return { rows, has_more: more }
}

async function threadOf(call: ToolContext['call'], id: string): Promise<string> {
  return (await call<Email>(messageRoute('GET', 'email'), { params: messageParams(id) })).thread_id
}

/** A page of at most `limit` rows; of fewer where these do not fit, so that its cursor goes on after the last that is shown. */
export async function listed<Row extends { id: string }>(
  read: (limit: number) => Promise<Page<Row>>,
  limit: number,
  lines: (text: AnswerText, number: number, row: Row) => boolean,
  none = 'No messages.',
): Promise<ToolAnswer> {
  const { data, next_cursor } = await read(limit)
  const text = new AnswerText()
  const shown: string[] = []
  for (const [index, row] of data.entries()) {
    // a line of the box takes as much again
    if (text.left < 700 || !lines(text, index + 1, row)) return listed(read, index, lines, none)
    shown.push(row.id)
  }
  if (data.length === 0) text.line(none)
  return { text: text.toString(next_cursor === null ? [] : [`More: cursor ${next_cursor}`]), data: { ids: shown, next_cursor } }
}
