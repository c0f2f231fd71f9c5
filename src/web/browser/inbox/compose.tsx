import type { JSX } from 'preact'
import type { Email } from '../../../mail/model.ts'
import { post } from '../api.ts'
import { announce } from '../widgets/announcer.tsx'
import { Cancel, Dialog } from '../widgets/dialog.tsx'
import { Field, Form, TextArea, Tick, type Typed } from '../widgets/form.tsx'
import { sendRequestOf } from './send-request.ts'

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
    onClose()
    onSent(sent)
  }
  return (
    <Dialog title={title} wide onClose={onClose}>
      <Form send={send} submit="Send" also={<Cancel onClose={onClose} />} label={title}>
        {children}
      </Form>
    </Dialog>
  )
}

/** A new message. */
export function ComposeDialog({ id, ...props }: Props & { id: string }): JSX.Element {
  return (
    <MessageDialog title="New message" path={`/v1/identities/${id}/emails`} {...props}>
      <>
        <Recipients first />
        <Field name="subject" label="Subject" autoComplete="off" />
        <Text />
        <Further />
      </>
    </MessageDialog>
  )
}

/** A reply, in the conversation of the original. */
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

/** Forwards the message. */
export function ForwardDialog({ email, ...props }: Props & { email: Email }): JSX.Element {
  const { id, identity_id } = email
  return (
    <MessageDialog title="Forward" path={`/v1/identities/${identity_id}/emails/${id}/forward`} {...props}>
      <>
        <Recipients first />
        <Text />
        <Tick name="as_attachment" label="As one attachment, unchanged" />
      </>
    </MessageDialog>
  )
}

function Recipients({ first = false }: { first?: boolean }): JSX.Element {
  return (
    <>
      <Field name="to" label="To" hint="Separate several with commas." autoComplete="off" autoCapitalize="none" first={first} />
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
