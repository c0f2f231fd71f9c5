import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { AttachmentWithUrl, Email } from '../../../mail/model.ts'
import { get, patch, pathOf, post, remove } from '../api.ts'
import { reread } from '../live.ts'
import { useText } from '../loaded.ts'
import { Action } from '../widgets/action.tsx'
import { ConfirmButton, Dialog, DialogButton } from '../widgets/dialog.tsx'
import { bytes, Mark, moment, Time } from '../widgets/format.tsx'
import { ForwardDialog, ReplyDialog } from './compose.tsx'
import { Deliveries, StatusMark } from './deliveries.tsx'
import { CodesAndLinks } from './codes-and-links.tsx'
import { Body } from './body.tsx'
import { VerdictLines, VerdictMark } from './verdict.tsx'
import { Fact, WhenLoaded } from '../widgets/listing.tsx'
import { CopyButton } from '../widgets/copy-button.tsx'

/** One message, `last` if it is the newest of its conversation; those already read are collapsed. */
export function Message({ email, last }: { email: Email; last: boolean }): JSX.Element {
  const [open, setOpen] = useState(last || !email.read)
  const { direction, from, from_name, status, received_at } = email
  const outbound = direction === 'outbound'
  return (
    <article class="sheet message" aria-label={`From ${from_name || from}`}>
      <header class="message-head">
        <h3>
          <button type="button" class="plain fold" aria-expanded={open} onClick={() => setOpen(!open)}>
            {from_name || from}
          </button>
        </h3>
        {outbound ? <StatusMark status={status} /> : <VerdictMark email={email} />}
        {email.spam && <Mark tone="warn">spam</Mark>}
        <span class="faint">
          <Time at={received_at} />
        </span>
      </header>
      {open && <Opened email={email} />}
    </article>
  )
}

function Opened({ email }: { email: Email }): JSX.Element {
  const { id, identity_id, direction, status, deliveries } = email
  const path = `/v1/identities/${identity_id}/emails/${id}`
  return (
    <>
      <Envelope email={email} />
      {direction === 'inbound' && <VerdictLines email={email} />}
      <CodesAndLinks codes={email.codes} links={email.links} />
      {email.parse_error !== null && <p class="refusal">It could not be parsed completely: {email.parse_error}</p>}
      <Body email={email} />
      <AttachmentList email={email} />
      {direction === 'outbound' && <Deliveries path={path} deliveries={deliveries} />}
      <div class="actions">
        <DialogButton class="primary" dialog={(close) => <ReplyDialog email={email} onClose={close} onSent={reread} />}>
          Reply
        </DialogButton>
        <DialogButton dialog={(close) => <ForwardDialog email={email} onClose={close} onSent={reread} />}>Forward</DialogButton>
        {direction === 'inbound' && (
          <Action
            run={() => patch(path, { read: !email.read }).then(reread)}
            done={email.read ? 'Marked as unread.' : 'Marked as read.'}
          >
            {email.read ? 'Mark as unread' : 'Mark as read'}
          </Action>
        )}
        {(status === 'scheduled' || status === 'queued') && (
          <Action run={() => post(`${path}/cancel`).then(reread)} done="Cancelled.">
            Cancel sending
          </Action>
        )}
        <DialogButton dialog={(close) => <Source path={path} onClose={close} />}>Source</DialogButton>
        <ConfirmButton
          label="Delete"
          title="Delete this e-mail?"
          action="Delete"
          done="Deleted. It can be restored from the trash."
          run={() => remove(path).then(reread)}
        >
          <p>It goes to the trash, from which it can be restored for a time.</p>
        </ConfirmButton>
      </div>
    </>
  )
}

/** From whom it is, and to whom. */
export function Envelope({ email }: { email: Email }): JSX.Element {
  const { from, from_name, recipients, status, send_at, reply_to, reply_to_verified, verified_domain } = email
  return (
    <dl class="facts">
      <Fact name="From">{from_name === '' ? from : `${from_name} <${from}>`}</Fact>
      {reply_to !== null && reply_to !== from && (
        <Fact name="Reply to">
          {reply_to_verified === false ? `${reply_to} (not signed by ${verified_domain ?? ''})` : reply_to}
        </Fact>
      )}
      {(['to', 'cc', 'bcc'] as const).map(
        (field) =>
          recipients[field].length > 0 && [
            <dt key={`${field} name`}>{field === 'to' ? 'To' : field === 'cc' ? 'Copy' : 'Blind copy'}</dt>,
            <dd key={field}>
              {recipients[field].map(({ address, name }) => (name ? `${name} <${address}>` : address)).join(', ')}
            </dd>,
          ],
      )}
      {send_at !== null && (status === 'scheduled' || status === 'held') && <Fact name="Scheduled for">{moment(send_at)}</Fact>}
    </dl>
  )
}

/** The attachments of a message; a download URL is created on demand. */
export function AttachmentList({ email: { id, identity_id, attachments } }: { email: Email }): JSX.Element | null {
  if (attachments.length === 0) return null
  const download = async (index: number): Promise<void> => {
    const { url } = await get<AttachmentWithUrl>(`/v1/identities/${identity_id}/emails/${id}/attachments/${index}`)
    location.assign(pathOf(url))
  }
  return (
    <ul class="attachments" aria-label="Attachments">
      {attachments.map(({ index, filename, size, content_type }) => (
        <li key={index}>
          <Action run={() => download(index)} title={content_type}>
            {filename} <span class="faint">{bytes(size)}</span>
          </Action>
        </li>
      ))}
    </ul>
  )
}

/** The most characters of a source that are shown; the file has all. */
const maxCharacters = 200_000

export function Source({ path, onClose }: { path: string; onClose: () => void }): JSX.Element {
  const source = useText(`${path}/raw`)
  return (
    <Dialog title="Source" wide onClose={onClose}>
      <WhenLoaded of={source}>
        {(text) => (
          <>
            <p class="actions">
              <CopyButton text={text} what="the source" />
              <a href={`${path}/raw`} download="">
                Download
              </a>
            </p>
            <pre class="source" tabIndex={0} aria-label="Source">
              {text.slice(0, maxCharacters)}
            </pre>
            {text.length > maxCharacters && <p class="hint">The source is truncated here: download the complete file.</p>}
          </>
        )}
      </WhenLoaded>
    </Dialog>
  )
}
