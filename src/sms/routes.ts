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
      sdk: 'identities.provisionPhone',
      errors: {
        400: ['sms_not_configured'],
        403: ['plan_limit_reached', 'too_many_numbers_released'],
        409: ['phone_number_exists', 'no_free_number'],
        500: ['sms_provider_error'],
      },
      audit: 'phone.added',
      summary: 'Provision a phone number for an identity',
      description:
        'Provisions a number from the SMS provider, in the named country or sms.country. If the provider fails, nothing is changed.',
      body: PhoneInput,
      reply: Identity,
      timeout: 60_000,
      example: { body: { country: 'US' } },
      handle: ({ caller, params, body }) => numbers.provision(caller, params.id, body.country),
    }),
    route('DELETE', '/identities/:id/phone', {
      scope: 'identities:write',
      sdk: 'identities.releasePhone',
      audit: 'phone.released',
      summary: 'Release the phone number of an identity',
      description: 'Releases it to the provider, with retries until the provider accepts; then phone.released is emitted.',
      reply: Deleted,
      handle: ({ caller, params }) => numbers.remove(caller, params.id),
    }),
    route('POST', '/identities/:id/sms', {
      aliases: ['/identities/:id/sms/send'],
      scope: [...write],
      sdk: 'sms.send',
      errors: {
        400: ['sms_not_configured'],
        403: ['plan_limit_reached', 'country_not_allowed', 'recipient_opted_out', 'policy_refused'],
        409: ['no_phone_number', 'identity_suspended', 'provider_not_configured'],
        429: ['sms_rate', 'too_many_holds'],
      },
      audit: 'sms.sent',
      summary: 'Send an SMS',
      description:
        'Responds as soon as it is in the queue. If the provider’s response is lost, the status is unknown, and it is not resent automatically. A recipient who sent STOP ' +
        'to the number is not sent anything until START. Where a policy holds it for a person, its status is held.',
      body: NewSms,
      reply: Sms,
      status: 201,
      location: (sms) => `/v1/identities/${sms.identity_id}/sms/${sms.id}`,
      example: { body: { to: '+15550100123', body: 'Your package has arrived.' } },
      handle: ({ caller, params, body }) => messages.send(caller, params.id, body),
      again: ({ caller, params }, id) => messages.get(caller, params.id, id),
    }),
    route('GET', '/identities/:id/sms', {
      scope: [...read],
      sdk: 'sms.list',
      audit: 'sms.listed',
      summary: 'List SMS',
      description: 'Newest first, both directions unless one is named.',
      query: SmsFilter,
      reply: Page(Sms),
      example: { query: { unread: 'true' } },
      handle: ({ caller, params, query }) => messages.list(caller, params.id, query),
    }),
    route('GET', '/identities/:id/sms/:sms_id', {
      scope: [...read],
      sdk: 'sms.get',
      audit: 'sms.read',
      summary: 'Get an SMS',
      reply: Sms,
      handle: ({ caller, params }) => messages.get(caller, params.id, params.sms_id),
    }),
    route('PATCH', '/identities/:id/sms/:sms_id', {
      scope: [...write],
      receipt: ['read'],
      sdk: 'sms.update',
      summary: 'Mark an SMS as read or unread',
      body: SmsChange,
      reply: Sms,
      example: { body: { read: true } },
      handle: ({ caller, params, body }) => messages.change(caller, params.id, params.sms_id, body),
    }),
    route('DELETE', '/identities/:id/sms/:sms_id', {
      scope: [...write],
      sdk: 'sms.delete',
      audit: 'sms.deleted',
      summary: 'Delete an SMS',
      description:
        'Moves it to the trash (GET …/sms?trash=true), with its pictures and its events; it can be restored until the retention time of the trash ' +
        'ends (retention.trash). With purge=true it is deleted permanently. A queued message is not sent.',
      query: Deletion,
      reply: Deleted,
      handle: ({ caller, params, query }) => messages.remove(caller, params.id, params.sms_id, query.purge),
    }),
    route('POST', '/identities/:id/sms/:sms_id/restore', {
      scope: [...write],
      sdk: 'sms.restore',
      audit: 'sms.restored',
      summary: 'Restore an SMS',
      description: 'Restores it from the trash. A message that had not been sent when it was deleted is not sent.',
      reply: Sms,
      handle: ({ caller, params }) => messages.restore(caller, params.id, params.sms_id),
      again: ({ caller, params }, id) => messages.get(caller, params.id, id),
    }),
    route('GET', '/identities/:id/sms/:sms_id/media/:index', {
      scope: [...read],
      sdk: 'sms.media',
      errors: { 409: ['media_pending'] },
      audit: 'media.read',
      summary: 'Get the URL of a picture',
      description: 'Also for other files of the message. The signed URL requires no key and is valid for 15 minutes.',
      reply: SmsMediaWithUrl,
      handle: ({ caller, params }) => media.get(caller, params.id, params.sms_id, params.index),
    }),
    route('GET', '/media/:sms_id/:index', {
      scope: 'public',
      rate: 'document',
      errors: { 403: ['bad_signature', 'url_expired', 'url_ended'] },
      summary: 'Download a picture by its signed URL',
      query: SignedQuery,
      download: '*/*',
      handle: ({ caller, params, query }) => media.open(params.sms_id, params.index, query, caller.ip),
    }),
  ]
}
