import { debugOnly, loggable } from '../core/log.ts'
import type { Log } from '../core/log.ts'
import { shownCommand } from './commands.ts'

/** What the library tells its logger of a command or reply, and how it writes those that may hold a password. */
interface Said {
  tnx: string
  cid: string
}
type LibraryLogger = ReturnType<typeof debugOnly>
const hidden = '/* secured */'

/** Characters of a command or reply that are logged. */
const mostSaid = 2048

/** The library's logger: at debug, every command and reply is logged, but no message and nothing of AUTH; else nothing. */
export function dialogueLogger(log: Log, addressOf: (session: string) => string | undefined): LibraryLogger {
  if (!log.isLevelEnabled('debug')) return debugOnly(() => undefined)
  return debugOnly((said, _format, text = '') => {
    const { tnx, cid: session } = said as Said
    const ip = addressOf(session)
    if (tnx === 'send') log.debug({ session, ip, reply: loggable(text, mostSaid) }, 'SMTP reply')
    else if (tnx === 'command') {
      const command = text === hidden ? '(secret)' : shownCommand(text)
      log.debug({ session, ip, command: loggable(command, mostSaid) }, 'SMTP command')
    }
  })
}
