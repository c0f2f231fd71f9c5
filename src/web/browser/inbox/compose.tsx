import type { JSX } from 'preact'
import type { Email } from '../../../mail/model.ts'
import { post } from '../api.ts'
import { announce } from '../widgets/announcer.tsx'
import { FormDialog } from '../widgets/dialog.tsx'
import { Field, TextArea, Tick, type Typed } from '../widgets/form.tsx'
import { typedTime } from '../widgets/format.tsx'

interface Props {
  onClose: () => void
  onSent: (email: Email) => void
}

interface DialogProps extends Props {
  title: string
  path: string
  children: JSX.Element
}

function MessageDialog({ title, path, children, onClose, onSent }: DialogProps): JSX.Element {
  const send = async (typed: Typed, files: FormData): Promise<void> => {
    const sent = await post<Email>(path, await sendRequestOf(typed, files))
    announce(sent.status === 'scheduled' ? 'The message was scheduled.' : 'The message was queued.')
    onSent(sent)
  }
  return (
    <FormDialog title={title} send={send} submit="Send" onClose={onClose} wide>
      {children}
    </FormDialog>
  )
}

export function ComposeDialog({ id, ...props }: Props & { id: string }): JSX.Element {
  return (
    <MessageDialog title="New message" path={`/v1/identities/${id}/emails`} {...props}>
      <>
        <Recipients />
        <Field name="subject" label="Subject" autoComplete="off" />
        <Text />
        <Further />
      </>
    </MessageDialog>
  )
}

export function ReplyDialog({ email, ...props }: Props & { email: Email }): JSX.Element {
  const { id, identity_id, from, from_name, recipients, direction, reply_to_verified, verified_domain, authentication } = email
  const others = recipients.to.length + recipients.cc.length > 1
  const bySignature = verified_domain !== null && authentication?.dmarc.aligned_by.join() === 'dkim'
  return (
    <MessageDialog
      title={direction === 'inbound' ? `Reply to ${from_name || from}` : 'Write again'}
      path={`/v1/identities/${identity_id}/emails/${id}/reply`}
      {...props}
    >
      <>
        <Text first />
        {others && <Tick name="reply_all" label="Reply to all" />}
        {bySignature && (others || reply_to_verified === false) && (
          <Tick name="allow_unsigned" label={`Also to addresses that ${verified_domain} did not sign`} />
        )}
        <Further />
      </>
    </MessageDialog>
  )
}

export function ForwardDialog({ email, ...props }: Props & { email: Email }): JSX.Element {
  const { id, identity_id } = email
  return (
    <MessageDialog title="Forward" path={`/v1/identities/${identity_id}/emails/${id}/forward`} {...props}>
      <>
        <Recipients />
        <Text />
        <Tick name="as_attachment" label="As one attachment, unchanged" />
      </>
    </MessageDialog>
  )
}

function Recipients(): JSX.Element {
  return (
    <>
      <Field name="to" label="To" hint="Separate several with commas." autoComplete="off" autoCapitalize="none" first />
      <Field name="cc" label="Copy" autoComplete="off" autoCapitalize="none" />
      <Field name="bcc" label="Blind copy" autoComplete="off" autoCapitalize="none" />
    </>
  )
}

function Text({ first = false }: { first?: boolean }): JSX.Element {
  return <TextArea name="body_text" label="Message" rows={9} first={first} />
}

function Further(): JSX.Element {
  return (
    <details>
      <summary>Attach files, or send later</summary>
      <Field name="attachments" label="Files" type="file" multiple />
      <Field name="send_at" label="Not before" type="datetime-local" />
    </details>
  )
}

/** The request of a form: lists of recipients, a time in UTC, files in base64. */
async function sendRequestOf(typed: Typed, form: FormData): Promise<Record<string, unknown>> {
  const { to, cc, bcc, send_at, ...rest } = typed
  const attachments = await Promise.all(form.getAll('attachments').filter(isFile).map(attached))
  return {
    ...rest,
    ...addressed({ to, cc, bcc }),
    send_at: typedTime(send_at),
    ...(attachments.length > 0 ? { attachments } : {}),
  }
}

function addressed(fields: Record<string, string | true | undefined>): Record<string, string | string[]> {
  const given = Object.entries(fields).flatMap(([name, value]) => {
    if (typeof value !== 'string' || (value.trim() === '' && name !== 'to')) return []
    const all = addressesIn(value)
    return [[name, all.length > 1 ? all : value.trim()] as const]
  })
  return Object.fromEntries(given)
}

/** Splits addresses at commas outside of quotes: `"Lovelace, Ada" <ada@example.com>`. */
function addressesIn(text: string): string[] {
  return (text.match(/(?:"(?:\\.|[^"\\])*"?|[^,"])+/g) ?? []).map((one) => one.trim()).filter((one) => one !== '')
}

function isFile(value: FormDataEntryValue): value is File {
  return value instanceof File && value.name !== ''
}

async function attached(file: File): Promise<{ filename: string; content_type?: string; content: string }> {
  const octets = new Uint8Array(await file.arrayBuffer())
  let text = ''
  // in blocks, as a call takes a limited number of arguments
  for (let at = 0; at < octets.length; at += 32_768) text += String.fromCharCode(...octets.subarray(at, at + 32_768))
  return { filename: file.name, ...(file.type === '' ? {} : { content_type: file.type }), content: btoa(text) }
}
