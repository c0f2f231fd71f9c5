import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { Email } from '../../../mail/model.ts'
import { patch, post, remove } from '../api.ts'
import { reread } from '../live.ts'
import { Action } from '../widgets/action.tsx'
import { announce } from '../widgets/announcer.tsx'
import { Confirm } from '../widgets/dialog.tsx'
import { Mark } from '../widgets/mark.tsx'
import { moment, Time } from '../widgets/format.tsx'
import { AttachmentList } from './attachments.tsx'
import { ForwardDialog, ReplyDialog } from './compose.tsx'
import { Deliveries, StatusMark } from './deliveries.tsx'
import { CodesAndLinks } from './codes-and-links.tsx'
import { Source } from './source.tsx'
import { Body } from './body.tsx'
import { VerdictLines, VerdictMark } from './verdict.tsx'

interface Props {
  email: Email
  /** Whether it is the newest of its conversation. */
  last: boolean
}

/** One message; those already read are collapsed. */
export function Message({ email, last }: Props): JSX.Element {
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

function Opened({ email }: Pick<Props, 'email'>): JSX.Element {
  const { id, identity_id, direction, from, from_name, recipients, status, deliveries, send_at } = email
  const { reply_to, reply_to_verified, verified_domain } = email
  const [doing, setDoing] = useState<'reply' | 'forward' | 'delete' | 'source'>()
  const path = `/v1/identities/${identity_id}/emails/${id}`
  const close = (): void => setDoing(undefined)
  const throwAway = async (): Promise<void> => {
    await remove(path)
    reread()
    announce('Deleted. It can be restored from the trash.')
  }
  return (
    <>
      <dl class="facts">
        <dt>From</dt>
        <dd>{from_name === '' ? from : `${from_name} <${from}>`}</dd>
        {reply_to !== null && reply_to !== from && (
          <>
            <dt>Reply to</dt>
            <dd>{reply_to_verified === false ? `${reply_to} (not signed by ${verified_domain ?? ''})` : reply_to}</dd>
          </>
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
        {send_at !== null && status === 'scheduled' && (
          <>
            <dt>Leaves</dt>
            <dd>{moment(send_at)}</dd>
          </>
        )}
      </dl>
      {direction === 'inbound' && <VerdictLines email={email} />}
      <CodesAndLinks codes={email.codes} links={email.links} />
      {email.parse_error !== null && <p class="refusal">It could not be read whole: {email.parse_error}</p>}
      <Body email={email} />
      <AttachmentList email={email} />
      {direction === 'outbound' && <Deliveries path={path} deliveries={deliveries} />}
      <div class="actions">
        <button type="button" class="primary" onClick={() => setDoing('reply')}>
          Reply
        </button>
        <button type="button" onClick={() => setDoing('forward')}>
          Forward
        </button>
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
        <button type="button" onClick={() => setDoing('source')}>
          Source
        </button>
        <button type="button" onClick={() => setDoing('delete')}>
          Delete
        </button>
      </div>
      {doing === 'reply' && <ReplyDialog email={email} onClose={close} onSent={reread} />}
      {doing === 'forward' && <ForwardDialog email={email} onClose={close} onSent={reread} />}
      {doing === 'source' && <Source path={path} onClose={close} />}
      {doing === 'delete' && (
        <Confirm title="Delete this e-mail?" action="Delete" run={throwAway} onClose={close}>
          <p>It goes to the trash, from where it can be restored for a time.</p>
        </Confirm>
      )}
    </>
  )
}
