import { Fault, invalid } from '../../core/fault.ts'
import type { BulkResult, Email } from '../../mail/model.ts'
import type { Sms } from '../../sms/model.ts'
import { AnswerText } from '../answer-text.ts'
import { tool, type Tool, type ToolAnswer, type ToolContext } from '../tool.ts'
import { channelOf, messageParams, messageRoute } from './messages.ts'

const send = 'POST /identities/:id/emails'
const reply = messageRoute('POST', 'email', '/reply')
const forward = messageRoute('POST', 'email', '/forward')
const cancel = messageRoute('POST', 'email', '/cancel')
const bulk = 'POST /identities/:id/emails/bulk'
const text = 'POST /identities/:id/sms'
const sends = { readOnlyHint: false, destructiveHint: false, openWorldHint: true }
const names = { body_text: 'text', email_id: 'message_id', sms_id: 'id' }

export const sendingTools: Tool[] = [
  tool('send_email', {
    description: 'Send an e-mail. Nobody can take it back.',
    annotations: sends,
    routes: [send],
    example: { to: ['ada@example.com'], subject: 'Hello', text: 'Hello Ada.' },
    names,
    run: async ({ call }, { idempotency_key, text: body_text, attachments, ...rest }) => {
      const files = attachments?.map(contentOf)
      const body = { ...rest, body_text, ...(files ? { attachments: files } : {}) }
      return accepted(await call<Receipt>(send, { body, idempotencyKey: idempotency_key }))
    },
  }),
  tool('reply_email', {
    description: 'Reply to, or forward, an e-mail.',
    annotations: sends,
    routes: [reply],
    example: { message_id: 'email_01jd3v8m2ef1pbx9mz5k7q4w6a', text: 'Thank you.' },
    names,
    run: async ({ call }, { message_id, text: body_text, reply_all, forward_to, idempotency_key }) => {
      if (forward_to && reply_all) throw invalid('forward_to', 'Send forward_to or reply_all, not both.')
      const body = forward_to ? { to: forward_to, body_text } : { body_text, reply_all }
      const given = { params: { email_id: message_id }, body, idempotencyKey: idempotency_key }
      return accepted(await call<Receipt>(forward_to ? forward : reply, given))
    },
  }),
  tool('send_sms', {
    description: 'Send an SMS from your number.',
    annotations: sends,
    routes: [text],
    example: { to: '+15550100123', body: 'On my way.' },
    run: async ({ call }, body) => accepted(await call<Receipt>(text, { body })),
  }),
  tool('message_status', {
    description: 'What became of a sent message; cancel stops one that is not sent yet.',
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
    routes: [messageRoute('GET', 'email'), messageRoute('GET', 'sms'), cancel],
    example: { id: 'email_01jd3v8m2ef1pbx9mz5k7q4w6a' },
    names: { email_id: 'id', sms_id: 'id' },
    run: statusOf,
  }),
  tool('mark_messages', {
    description: 'Mark messages read or unread, label e-mails, or move messages to trash.',
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
    routes: [bulk, messageRoute('PATCH', 'sms')],
    example: { ids: ['email_01jd3v8m2ef1pbx9mz5k7q4w6a'], read: true },
    run: mark,
  }),
]

/** For a message that a person is to see first. */
const heldText = 'It waits for a person to approve it, and is not sent before: do not send it again.'

/** What a key that may not read sees of a message it has sent is the same. */
type Receipt = Pick<Email, 'id' | 'status'> & { send_at?: string | null }

function accepted({ id, status, send_at }: Receipt): ToolAnswer {
  const when = send_at ? `, to be sent at ${send_at}` : ''
  if (status === 'held')
    return { text: `${id} held. ${heldText} What they decide: message_status ${JSON.stringify({ id })}`, data: { id, status } }
  return { text: `${id} ${status}${when}. What becomes of it: message_status ${JSON.stringify({ id })}`, data: { id, status } }
}

interface GivenFile {
  filename: string
  text?: string | undefined
  base64?: string | undefined
  url?: string | undefined
}

function contentOf({ filename, text: plain, base64, url }: GivenFile, index: number): Record<string, string> {
  const contents = [plain, base64, url].filter((one) => one !== undefined)
  if (contents.length !== 1) throw invalid(`attachments.${index}`, `attachments.${index} needs one of text, base64 and url.`)
  if (url !== undefined) return { filename, url }
  return { filename, content: base64 ?? Buffer.from(plain!).toString('base64') }
}

async function statusOf({ call }: ToolContext, { id, cancel: stop }: { id: string; cancel: boolean }): Promise<ToolAnswer> {
  if (channelOf(id) === 'sms') {
    if (stop) throw invalid('cancel', 'Only e-mails can be cancelled: a text message is sent at once.')
    const { status, error, sent_at, delivered_at } = await call<Sms>(messageRoute('GET', 'sms'), { params: messageParams(id) })
    const answer = new AnswerText()
    answer.line(`${id} ${status}, sent ${sent_at ?? 'not yet'}, delivered ${delivered_at ?? 'not known'}`)
    if (error) answer.foreign('The provider said: ', `${error.code} ${error.message}`)
    return { text: answer.toString(), data: { id, status } }
  }
  const email = await call<Partial<Email> & Receipt>(stop ? cancel : messageRoute('GET', 'email'), { params: messageParams(id) })
  const { status, send_at, deliveries = [], hold } = email
  const answer = new AnswerText()
  answer.line(`${id} ${status}${status === 'scheduled' && send_at ? `, to be sent at ${send_at}` : ''}`)
  if (status === 'held') answer.line(heldText)
  else if (hold) answer.foreign(`A person was to see it: ${hold.status}`, hold.reason ? `, and says: ${hold.reason}` : '')
  for (const { recipient, status: state, attempts, next_attempt_at, response } of deliveries) {
    const next = next_attempt_at === null ? '' : `, next attempt ${next_attempt_at}`
    if (
      !answer.foreign(
        `${recipient}: `,
        `${state}, ${attempts} attempts${next}${response === null ? '' : `, server said: ${response}`}`,
      )
    )
      break
  }
  return {
    text: answer.toString(),
    data: {
      id,
      status,
      deliveries: deliveries.slice(0, 10).map(({ recipient, status: state }) => ({ recipient, status: state })),
    },
  }
}

/** The most messages marked by one call, and the longest id. */
const most = 50
const longestId = 100

interface MarkInput {
  ids: string[]
  read?: boolean | undefined
  labels?: string[] | undefined
  trash: boolean
}

/** The messages that are as asked for, and why others are not. */
interface Marked {
  changed: string[]
  failed: string[]
}

async function mark({ call }: ToolContext, { ids, read, labels, trash }: MarkInput): Promise<ToolAnswer> {
  if (read === undefined && labels === undefined && !trash) throw invalid('read', 'Say what to do: read, labels or trash.')
  if (ids.length > most) throw invalid('ids', `ids must have at most ${most} entries; call it again for the others.`)
  const add = (labels ?? []).filter((label) => !label.startsWith('-'))
  const remove = (labels ?? []).filter((label) => label.startsWith('-')).map((label) => label.slice(1))
  const flag = read === undefined ? {} : { read }
  const { email: emails = [], sms: texts = [] } = Object.groupBy(new Set(ids), channelOf)
  const marked = [
    await markEmails(call, emails, { marks: { ...flag, ...(labels ? { labels: { add, remove } } : {}) }, trash }),
    await markTexts(call, texts, { marks: flag, labels: labels !== undefined, trash }),
  ]
  const changed = marked.flatMap((one) => one.changed).length
  const failed = marked.flatMap((one) => one.failed)
  const answer = new AnswerText()
  answer.line(`Changed ${changed} of ${ids.length}.`)
  for (const line of failed) answer.foreign('Not changed: ', line)
  return { text: answer.toString(), data: { changed, failed: failed.length } }
}

/** All by one call, as a program would do it: each call counts. */
async function markEmails(
  call: ToolContext['call'],
  ids: string[],
  { marks, trash }: { marks: object; trash: boolean },
): Promise<Marked> {
  const failed: string[] = []
  // what has no id of ours is not in question
  const given = Map.groupBy(ids, (id) => id.length <= longestId)
  let changed = given.get(true) ?? []
  for (const id of given.get(false) ?? []) failed.push(because(id, 'No such e-mail.'))
  for (const change of [marks, trash ? { delete: true } : {}]) {
    if (changed.length === 0 || Object.keys(change).length === 0) continue
    try {
      const result = await call<BulkResult>(bulk, { body: { ids: changed, ...change } })
      failed.push(...result.not_found.map((id) => because(id, 'No such e-mail.')))
      failed.push(...result.failed.map(({ id, message }) => because(id, message)))
      changed = result.changed
    } catch (error) {
      const why = reasonOf(error)
      failed.push(...changed.map((id) => because(id, why)))
      changed = []
    }
  }
  return { changed, failed }
}

async function markTexts(
  call: ToolContext['call'],
  ids: string[],
  { marks, labels, trash }: { marks: object; labels: boolean; trash: boolean },
): Promise<Marked> {
  const changed: string[] = []
  const failed: string[] = []
  for (const id of ids) {
    const params = messageParams(id)
    try {
      if (labels) throw invalid('labels', 'Text messages have no labels.')
      if (Object.keys(marks).length > 0) await call(messageRoute('PATCH', 'sms'), { params, body: marks })
      if (trash) await call(messageRoute('DELETE', 'sms'), { params })
      changed.push(id)
    } catch (error) {
      failed.push(because(id, reasonOf(error)))
    }
  }
  return { changed, failed }
}

function because(id: string, why: string): string {
  return `${id.slice(0, 64)}: ${why}`
}

/** Why a message was not changed. Throws what would keep all others from being changed too. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Fault) || error.type === 'rate_limited' || error.type === 'unauthorized') throw error
  return error.message
}
