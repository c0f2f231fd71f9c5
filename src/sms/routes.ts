import { Deleted, Deletion, Page, SignedQuery } from '../core/shapes.ts'
import { type AnyRoute, routeOf } from '../http/route.ts'
import { Identity } from '../identities/model.ts'
import type { MediaStore } from './media.ts'
import type { Messages } from './messages.ts'
import { NewSms, PhoneInput, Sms, SmsChange, SmsFilter, SmsMediaWithUrl } from './model.ts'
import type { Numbers } from './numbers.ts'

const route = routeOf('SMS')
const read = ['messages:read', 'sms:read'] as const
const write = ['messages:write', 'sms:write'] as const

export function routes({ messages, numbers, media }: { messages: Messages; numbers: Numbers; media: MediaStore }): AnyRoute[] {
  return [
    route('POST', '/identities/:id/phone', {
      scope: 'identities:write',
      receipt: ['phone_number'],
      summary: 'Give an identity a phone number',
      description:
        'From the SMS provider, of the country named or of sms.country. Should the provider fail, nothing is half made.',
      body: PhoneInput,
      reply: Identity,
      timeout: 60_000,
      example: { body: { country: 'US' } },
      handle: ({ caller, params, body }) => numbers.provision(caller, params.id, body.country),
    }),
    route('DELETE', '/identities/:id/phone', {
      scope: 'identities:write',
      summary: 'Take the phone number from an identity',
      description: 'It is given back to the provider, which is asked until it agrees; then phone.released says so.',
      reply: Deleted,
      handle: ({ caller, params }) => numbers.remove(caller, params.id),
    }),
    route('POST', '/identities/:id/sms', {
      aliases: ['/identities/:id/sms/send'],
      scope: [...write],
      summary: 'Send an SMS',
      description:
        'Answers as soon as it is in the queue. A provider whose answer is lost leaves it unknown: it is not sent again by itself. Who said STOP ' +
        'to the number is sent nothing until START.',
      body: NewSms,
      reply: Sms,
      status: 201,
      location: (sms) => `/v1/identities/${sms.identity_id}/sms/${sms.id}`,
      example: { body: { to: '+15550100123', body: 'The parcel is at the door.' } },
      handle: ({ caller, params, body }) => messages.send(caller, params.id, body),
      again: ({ caller, params }, id) => messages.get(caller, params.id, id),
    }),
    route('GET', '/identities/:id/sms', {
      scope: [...read],
      summary: 'List SMS',
      description: 'Newest first, both directions unless one is named.',
      query: SmsFilter,
      reply: Page(Sms),
      example: { query: { unread: 'true' } },
      handle: ({ caller, params, query }) => messages.list(caller, params.id, query),
    }),
    route('GET', '/identities/:id/sms/:sms_id', {
      scope: [...read],
      summary: 'Get an SMS',
      reply: Sms,
      handle: ({ caller, params }) => messages.get(caller, params.id, params.sms_id),
    }),
    route('PATCH', '/identities/:id/sms/:sms_id', {
      scope: [...write],
      receipt: ['read'],
      summary: 'Mark an SMS as read or unread',
      body: SmsChange,
      reply: Sms,
      example: { body: { read: true } },
      handle: ({ caller, params, body }) => messages.change(caller, params.id, params.sms_id, body),
    }),
    route('DELETE', '/identities/:id/sms/:sms_id', {
      scope: [...write],
      summary: 'Delete an SMS',
      description:
        'It goes to the trash (GET …/sms?trash=true), with its pictures and what the log tells of it, to be restored until the time of the trash is ' +
        'over (retention.trash). With purge=true it goes for good. One that waits in the queue is not sent.',
      query: Deletion,
      reply: Deleted,
      handle: ({ caller, params, query }) => messages.remove(caller, params.id, params.sms_id, query.purge),
    }),
    route('POST', '/identities/:id/sms/:sms_id/restore', {
      scope: [...write],
      summary: 'Restore an SMS',
      description: 'From the trash. One that had not been sent when it was deleted is not sent.',
      reply: Sms,
      handle: ({ caller, params }) => messages.restore(caller, params.id, params.sms_id),
      again: ({ caller, params }, id) => messages.get(caller, params.id, id),
    }),
    route('GET', '/identities/:id/sms/:sms_id/media/:index', {
      scope: [...read],
      summary: 'Get the URL of a picture',
      description: 'Or whatever else came with the message. The signed URL needs no key and is valid for 15 minutes.',
      reply: SmsMediaWithUrl,
      handle: ({ caller, params }) => media.get(caller, params.id, params.sms_id, params.index),
    }),
    route('GET', '/media/:sms_id/:index', {
      scope: 'public',
      rate: 'document',
      summary: 'Download a picture by its signed URL',
      query: SignedQuery,
      download: 'application/octet-stream',
      handle: ({ params, query }) => media.open(params.sms_id, params.index, query),
    }),
  ]
}
