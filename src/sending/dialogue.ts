import { debugOnly, loggable } from '../core/log.ts'
import type { Log } from '../core/log.ts'
import type { Opened } from './mx.ts'

/** Characters of a command or reply that are logged. */
const mostSaid = 2048

/** Options of the library with which, at debug, each command and reply is logged; it leaves out messages and what it logs in with. */
export function loggedDialogue(log: Log, { hostname: mx, address: ip }: Opened): object {
  if (!log.isLevelEnabled('debug')) return {}
  const logger = debugOnly((said, text = '') => {
    const { tnx } = said as { tnx?: string }
    if (tnx === 'client') log.debug({ mx, ip, command: loggable(text, mostSaid) }, 'SMTP command sent')
    else if (tnx === 'server') log.debug({ mx, ip, reply: loggable(text, mostSaid) }, 'SMTP reply received')
  })
  return { transactionLog: true, logger }
}
