import type { JSX } from 'preact'
import type { Email } from '../../../mail/model.ts'
import { Mark } from '../widgets/mark.tsx'

const tones: Partial<Record<Email['status'], 'good' | 'warn' | 'bad'>> = {
  delivered: 'good',
  sent: 'good',
  deferred: 'warn',
  bounced: 'bad',
  failed: 'bad',
  cancelled: 'warn',
}

/** How far an e-mail, or its delivery to one recipient, has come. */
export function StatusMark({ status }: { status: Email['status'] }): JSX.Element {
  return <Mark tone={tones[status]}>{status}</Mark>
}
