import * as z from 'zod'
import type { Caller, Scope } from '../core/scopes.ts'
import { Deleted, Deletion, Flag, Page, Paging, SignedQuery } from '../core/shapes.ts'
import { type AnyRoute, type Download, routeOf } from '../http/route.ts'
import type { Attachments } from './attachments.ts'
import type { AttachmentTexts } from './documents/attachment-texts.ts'
import type { Emails } from './emails.ts'
import type { BulkChanges } from './bulk.ts'
import type { Look } from './html-view.ts'
import {
  Attachment,
  AttachmentText,
  AttachmentWithUrl,
  BulkResult,
  Email,
  EmailChange,
  EmailRow,
  TextSlice,
  Thread,
  ThreadWithMessages,
} from './model.ts'
import { BulkChange, EmailFilter, EmailSearch, ThreadPaging } from './queries.ts'
import type { Threads } from './threads.ts'

const route = routeOf('E-mail')
const read: Scope[] = ['messages:read', 'emails:read']
const write: Scope[] = ['messages:write', 'emails:write']

interface Nouns {
  emails: Emails
  /** True if lists have bodies unless they are asked for without. */
  listBodies: () => boolean
  search: (caller: Caller, identityId: string, input: EmailSearch) => Promise<Page<EmailRow>>
  bulk: BulkChanges
  threads: Threads
  attachments: Attachments
  texts: AttachmentTexts
  html: (caller: Caller, identityId: string, id: string, how: Look & { signal: AbortSignal }) => Promise<Download>
}

export function routes(nouns: Nouns): AnyRoute[] {
  return [...emailRoutes(nouns), ...attachmentRoutes(nouns), ...threadRoutes(nouns.threads)]
}

function emailRoutes({ emails, listBodies, search, bulk, html }: Nouns): AnyRoute[] {
  return [
    route('GET', '/identities/:id/emails', {
      scope: read,
      sdk: 'emails.list',
      audit: 'email.listed',
      summary: 'List e-mails',
      description: 'Newest first, without bodies unless include=body. Inbound, without spam and duplicates by default.',
      query: EmailFilter,
      reply: Page(EmailRow),
      handle: ({ caller, params, query }) =>
        emails.list(caller, params.id, query.include === undefined && listBodies() ? { ...query, include: 'body' } : query),
    }),
    route('GET', '/identities/:id/emails/search', {
      scope: read,
      sdk: 'emails.search',
      audit: 'email.searched',
      summary: 'Search e-mails',
      description:
        'Full text over sender, subject and the first 262,144 characters of the body (of a message to more than four recipients here, 1,048,576 divided by their number), newest first. Inbound by default, without spam and duplicates. At least one of query (or q), from, to, after, before and unread is required.',
      query: EmailSearch,
      reply: Page(EmailRow),
      example: { query: { query: 'invoice -draft' } },
      handle: ({ caller, params, query }) => search(caller, params.id, query),
    }),
    route('POST', '/identities/:id/emails/bulk', {
      scope: write,
      sdk: 'emails.updateMany',
      receipt: 'all',
      // may free space
      stores: false,
      audit: 'email.bulk_changed',
      summary: 'Change many e-mails',
      description:
        'Marks, labels or deletes up to 500 e-mails, named by ids or by a search (exactly one of the two). The same as PATCH and DELETE of each, some at a time: a call that ends early has ' +
        'changed some of them, and can be repeated. While has_more is true, call again with next_cursor as cursor.',
      body: BulkChange,
      reply: BulkResult,
      timeout: 120_000,
      example: { body: { ids: ['email_01jd3v8m2ef1pbx9mz5k7q4w6a'], read: true, labels: { add: ['seen'] } } },
      handle: ({ caller, params, body, signal }) => bulk.apply(caller, params.id, body, signal),
    }),
    route('GET', '/identities/:id/emails/:email_id', {
      scope: read,
      sdk: 'emails.get',
      audit: 'email.read',
      summary: 'Get an e-mail',
      description:
        'With bodies, codes, links, attachments and the results of SPF, DKIM, DMARC and ARC. Does not mark it as read.',
      reply: Email,
      handle: ({ caller, params }) => emails.get(caller, params.id, params.email_id),
    }),
    route('PATCH', '/identities/:id/emails/:email_id', {
      scope: write,
      receipt: ['read', 'send_at'],
      sdk: 'emails.update',
      errors: { 403: ['plan_limit_reached', 'beyond_own'], 409: ['not_scheduled'] },
      summary: 'Change an e-mail',
      description: 'Marks it as read or unread, changes labels, or reschedules a scheduled e-mail.',
      body: EmailChange,
      reply: Email,
      example: { body: { read: true, labels: { add: ['seen'] } } },
      handle: ({ caller, params, body, signal }) => emails.change(caller, params.id, params.email_id, body, signal),
    }),
    route('DELETE', '/identities/:id/emails/:email_id', {
      scope: write,
      sdk: 'emails.delete',
      audit: 'email.deleted',
      summary: 'Delete an e-mail',
      description:
        'Moves it to the trash (GET …/emails?trash=true): it disappears immediately from lists, search, threads and the event log, and can be restored until the retention ' +
        'time of the trash ends (retention.trash). With purge=true it is deleted permanently.',
      query: Deletion,
      reply: Deleted,
      handle: ({ caller, params, query }) => emails.remove(caller, params.id, params.email_id, query.purge),
    }),
    route('POST', '/identities/:id/emails/:email_id/restore', {
      scope: write,
      sdk: 'emails.restore',
      audit: 'email.restored',
      summary: 'Restore an e-mail',
      description:
        'Restores it from the trash to where it was. A message that had not been sent when it was deleted is not sent.',
      reply: Email,
      handle: ({ caller, params }) => emails.restore(caller, params.id, params.email_id),
      again: ({ caller, params, signal }, id) => emails.get(caller, params.id, id, signal),
    }),
    route('GET', '/identities/:id/emails/:email_id/raw', {
      scope: read,
      sdk: 'emails.raw',
      errors: { 404: ['not_found', 'raw_expired'] },
      audit: 'email.source_read',
      summary: 'Get the source of an e-mail',
      description: 'The raw message as received, with our trace header prepended (RFC 5321 4.4).',
      download: 'message/rfc822',
      handle: async ({ caller, params, signal }) => ({
        type: 'message/rfc822',
        bytes: await emails.raw(caller, params.id, params.email_id, signal),
        headers: { 'Content-Disposition': `attachment; filename="${params.email_id}.eml"` },
      }),
    }),
    route('GET', '/identities/:id/emails/:email_id/html', {
      scope: read,
      sdk: 'emails.html',
      audit: 'email.read',
      summary: 'Get an e-mail as an HTML page',
      description:
        'Its sanitized HTML as a page that runs no scripts, loads no external content and opens links in a new window, enforced by a Content-Security-Policy (sandbox). Embedded images are included. ' +
        'For an iframe on a page of the box. An e-mail without HTML is not_found.',
      query: z.strictObject({
        remote: Flag.default(false).meta({ description: 'load external images, which tells their servers that it was viewed' }),
        measure: Flag.default(false).meta({
          description:
            'a copy whose size the page of the box can read: it has the origin of the box; it loads no external images, and its links open no window',
        }),
      }),
      download: 'text/html',
      handle: ({ caller, params, query, signal }) => html(caller, params.id, params.email_id, { ...query, signal }),
    }),
  ]
}

function attachmentRoutes({ attachments, texts }: Nouns): AnyRoute[] {
  return [
    route('GET', '/identities/:id/emails/:email_id/attachments', {
      scope: read,
      sdk: 'emails.attachments',
      summary: 'List attachments',
      query: Paging,
      reply: Page(Attachment),
      handle: ({ caller, params, query }) => attachments.list(caller, params.id, params.email_id, query),
    }),
    route('GET', '/identities/:id/emails/:email_id/attachments/:index', {
      scope: read,
      sdk: 'emails.attachment',
      audit: 'attachment.read',
      summary: 'Get an attachment’s URL',
      description: 'The signed URL requires no key and is valid for 15 minutes.',
      reply: AttachmentWithUrl,
      handle: ({ caller, params }) => attachments.get(caller, params.id, params.email_id, params.index),
    }),
    route('GET', '/identities/:id/emails/:email_id/attachments/:index/text', {
      scope: read,
      sdk: 'emails.attachmentText',
      audit: 'attachment.read',
      summary: 'Get the text of an attachment',
      description:
        'Of PDF, DOCX, XLSX, HTML, CSV and other plain text, a piece at a time: continue with next_offset. Characters count as in JavaScript, those beyond U+FFFF as two. ' +
        'Of the text 1,000,000 characters are read, the rest is left out (truncated). A scanned PDF has no text. Other formats are answered 400 `attachment_not_text`, ' +
        'damaged and encrypted files `attachment_unreadable`, and those that take too much time or memory, or have more than 32 MiB, `attachment_too_large_for_text`.',
      // documents are read in turn, for some seconds each
      timeout: 60_000,
      query: TextSlice,
      reply: AttachmentText,
      handle: ({ caller, params, query, signal }) =>
        texts.read(caller, { identityId: params.id, emailId: params.email_id, index: params.index }, query, signal),
    }),
    route('GET', '/attachments/:email_id/:index', {
      scope: 'public',
      rate: 'document',
      errors: { 403: ['bad_signature', 'url_expired', 'url_ended'], 500: ['attachment_unreadable'] },
      summary: 'Download an attachment by its signed URL',
      query: SignedQuery,
      download: '*/*',
      handle: ({ caller: { ip }, params, query, signal }) =>
        attachments.open(params.email_id, params.index, query, { ip, signal }),
    }),
  ]
}

function threadRoutes(threads: Threads): AnyRoute[] {
  return [
    routeOf('Threads')('GET', '/identities/:id/threads', {
      scope: 'messages:read',
      sdk: 'threads.list',
      audit: 'thread.listed',
      summary: 'List threads',
      description: 'Ordered by their newest message, newest first.',
      query: Paging,
      reply: Page(Thread),
      handle: ({ caller, params, query }) => threads.list(caller, params.id, query),
    }),
    routeOf('Threads')('GET', '/identities/:id/threads/:thread_id', {
      scope: 'messages:read',
      sdk: 'threads.get',
      audit: 'thread.read',
      summary: 'Get a thread',
      description: 'With complete messages. Long threads are paged: continue with next_cursor while has_more is true.',
      query: ThreadPaging,
      reply: ThreadWithMessages,
      handle: ({ caller, params, query }) => threads.get(caller, params.id, params.thread_id, query),
    }),
  ]
}
