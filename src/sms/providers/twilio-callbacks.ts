import { Fault } from '../../core/fault.ts'
import type { RawRequest } from '../../http/route.ts'
import type { IncomingMedia, CallbackContent, StatusUpdate } from '../provider.ts'

/**
 * The form fields of Twilio. Its signature joins names and values without a separator, so that `A=1&B=2` and `A=1B2` have the same
 * signature: an unknown name could be such a forgery, and is refused.
 */
const known =
  /^(?:MessageSid|SmsSid|SmsMessageSid|AccountSid|MessagingServiceSid|From|To|Body|NumMedia|NumSegments|SmsStatus|MessageStatus|ApiVersion|(?:From|To)(?:City|State|Zip|Country)|Media(?:Url|ContentType)\d{1,2}|ErrorCode|ErrorMessage|OptOutType|ReferralNumMedia|ChannelPrefix|ChannelToAddress|ChannelInstallSid|ChannelStatusMessage|RawDlrDoneDate|MessageType|ProfileName|AddOns|StructuredMessage|EventType|Forwarded|Latitude|Longitude|Address|Label)$/

/** The most fields of a form; a message with ten media has fewer than 60. What is unsigned costs no more than parsing these. */
const maxFields = 100

/** The delivery statuses we subscribe to. */
const outcomes: Record<string, StatusUpdate['status']> = {
  sent: 'sent',
  delivered: 'delivered',
  read: 'delivered',
  undelivered: 'failed',
  failed: 'failed',
}

type Verify = (signature: string, url: string, form: Record<string, string>) => boolean

/** The form of a callback that Twilio signed for this URL and account; throws Fault forbidden with the reason for any other. */
export function signedForm(request: RawRequest, url: string, accountSid: string, verify: Verify): Record<string, string> {
  const text = request.bytes.toString('utf8')
  if (text.split('&', maxFields + 1).length > maxFields) throw refused(`it has more than ${maxFields} fields`)
  const form: Record<string, string> = {}
  for (const [name, value] of new URLSearchParams(text)) {
    if (Object.hasOwn(form, name)) throw refused(`the field ${name.slice(0, 40)} appears twice`)
    form[name] = value
  }
  const signature = request.headers['x-twilio-signature']
  if (typeof signature !== 'string') throw refused('it has no signature')
  if (!verify(signature, request.search === '' ? url : `${url}?${request.search}`, form)) {
    throw refused('its signature is invalid: sms.twilio.auth_token and public_url must match those at Twilio')
  }
  const unknown = Object.keys(form).find((name) => !known.test(name))
  if (unknown !== undefined) throw refused(`the field ${unknown.slice(0, 40)} is unknown`)
  if (form['AccountSid'] !== accountSid) throw refused('it belongs to another account')
  if (!form['MessageSid']) throw refused('it names no message')
  return form
}

/** A received message. */
export function inboundOf(form: Record<string, string>): CallbackContent {
  const { MessageSid, From, To, Body, NumMedia = '0', OptOutType, ErrorCode, ErrorMessage } = form
  if (From === undefined || To === undefined || Body === undefined) throw refused('From, To or Body is missing')
  const media: IncomingMedia[] = []
  for (let index = 0; index < Math.min(Number(NumMedia), 10); index += 1) {
    const source = form[`MediaUrl${index}`]
    if (source) media.push({ source, content_type: form[`MediaContentType${index}`] ?? 'application/octet-stream' })
  }
  const input = OptOutType === 'STOP' ? 'stop' : OptOutType === 'START' ? 'start' : undefined
  return {
    sms: {
      provider_id: MessageSid!,
      from: From,
      to: To,
      body: Body,
      media,
      ...(input ? { input } : {}),
      ...(ErrorCode ? { error: { code: ErrorCode, message: explained(ErrorCode, ErrorMessage) } } : {}),
    },
  }
}

/** A delivery status; null when it changes nothing. */
export function statusOf(form: Record<string, string>, smsId: string | null): CallbackContent {
  const status = outcomes[form['MessageStatus'] ?? '']
  if (!status) return null
  const { MessageSid, ErrorCode, ErrorMessage } = form
  const code = ErrorCode ?? 'undelivered'
  return {
    update: {
      status,
      provider_id: MessageSid,
      ...(smsId === null ? {} : { sms_id: smsId }),
      ...(status === 'failed' ? { error: { code, message: explained(code, ErrorMessage) } } : {}),
    },
  }
}

const explanations: Record<string, string> = {
  '21211': 'This number cannot be sent to.',
  '21610': 'The recipient has opted out at Twilio (STOP).',
  '30003': 'The phone is off or unreachable.',
  '30005': 'The number does not exist.',
  '30006': 'The number is a landline, or its network is unreachable.',
  '30007': 'The carrier rejected it as spam.',
  '30038': 'Twilio redacts one-time codes: numbers of Twilio are not allowed to receive them.',
}

/** Twilio’s own text where it has one. */
export function explained(code: string, message: string | undefined): string {
  return explanations[code] ?? (message || `Twilio error ${code}`)
}

function refused(reason: string): Fault {
  return new Fault('forbidden', `This call is not from Twilio: ${reason}.`, { code: 'bad_signature' })
}
