import type { Caller, Scope } from '../core/scopes.ts'
import { type AnyRoute, routeOf } from '../http/route.ts'
import type { Emails } from '../mail/emails.ts'
import { Email } from '../mail/model.ts'
import { requireReading, type SendService } from './compose/send-service.ts'
import { NewEmail, NewForward, NewReply, readers } from './model.ts'
import type { Pending } from './compose/pending.ts'

const route = routeOf('E-mail')
const write: Scope[] = ['messages:write', 'emails:write']

/** Options of all calls that create a message: attachments are large and may have to be fetched. */
const writing = {
  scope: write,
  reply: Email,
  status: 201,
  location: ({ id, identity_id }: Email): string => `/v1/identities/${identity_id}/emails/${id}`,
  limit: 40 * 1024 * 1024,
  timeout: 120_000,
  errors: {
    400: [
      'outbound_off',
      'recipient_suppressed',
      'sender_not_allowed',
      'url_unreachable',
      'message_too_large',
      'too_many_recipients',
    ],
    403: ['plan_limit_reached', 'beyond_own'],
    409: ['domain_not_verified', 'identity_suspended', 'mailbox_full', 'no_reply_address'],
    429: ['send_rate', 'warm_up', 'automatic_replies'],
  },
} as const

const outside =
  'A recipient that is not on this box is a conflict, code domain_not_verified, where mail from the domain of the sender can be sent only to addresses ' +
  'on this box: can_send_outside of the identity says so before, and its reason names whom to ask. It holds for a message with send_at too.'

export function emailRoutes(sendService: SendService, pending: Pending, emails: Emails): AnyRoute[] {
  // a repetition returns the message as it is now
  const again = ({ caller, params }: { caller: Caller; params: { id: string } }, id: string): Promise<Email> =>
    emails.get(caller, params.id, id)
  return [
    route('POST', '/identities/:id/emails', {
      ...writing,
      aliases: ['/identities/:id/emails/send'],
      sdk: 'emails.send',
      audit: 'email.sent',
      summary: 'Send an e-mail',
      description:
        'Responds once the message is durably stored: it will be sent even after a crash. With in_reply_to the key also requires ' +
        `messages:read or emails:read. ${outside}`,
      body: NewEmail,
      example: { body: { to: 'postmaster@pillarbox.test', subject: 'Hello', body_text: 'Hello there.' } },
      handle: ({ caller, params, body, signal }) => sendService.send(caller, params.id, body, signal),
      again: async (input, id) => {
        requireReading(input.caller, input.body)
        return again(input, id)
      },
    }),
    route('POST', '/identities/:id/emails/:email_id/reply', {
      ...writing,
      alsoScope: readers,
      sdk: 'emails.reply',
      errors: { ...writing.errors, 409: [...writing.errors[409], 'null_sender', 'unsigned_recipients'] },
      audit: 'email.sent',
      summary: 'Reply to an e-mail',
      description:
        'Sends a reply to its Reply-To or sender (for a sent message: to its recipients), in its thread, with the message quoted below. A Reply-To that the verified sender did not sign (reply_to_verified is false) is used only with allow_unsigned; otherwise the reply goes to from. With reply_all an unsigned To or Cc with other addresses is a conflict, code unsigned_recipients. ' +
        outside,
      body: NewReply,
      example: { body: { body_text: 'Thank you.' } },
      handle: ({ caller, params, body, signal }) => sendService.reply(caller, params.id, params.email_id, body, signal),
      again,
    }),
    route('POST', '/identities/:id/emails/:email_id/forward', {
      ...writing,
      alsoScope: readers,
      sdk: 'emails.forward',
      audit: 'email.sent',
      summary: 'Forward an e-mail',
      description: `Forwards the quoted text and the attachments, or the complete message as one attachment. ${outside}`,
      body: NewForward,
      example: { body: { to: 'postmaster@pillarbox.test', body_text: 'See below.' } },
      handle: ({ caller, params, body, signal }) => sendService.forward(caller, params.id, params.email_id, body, signal),
      again,
    }),
    route('POST', '/identities/:id/emails/:email_id/cancel', {
      stores: false,
      scope: write,
      sdk: 'emails.cancel',
      errors: { 409: ['not_cancellable'] },
      audit: 'email.cancelled',
      summary: 'Cancel an e-mail',
      description:
        'Possible while it is scheduled or queued. After the first delivery attempt for any recipient it is a conflict.',
      reply: Email,
      handle: ({ caller, params }) => pending.cancel(caller, params.id, params.email_id),
      again,
    }),
  ]
}
