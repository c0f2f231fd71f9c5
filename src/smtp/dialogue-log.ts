import { debugOnly, type Log, loggable } from '../core/log.ts'

/** What the library tells its logger of a command or reply, and how it writes those that may hold a password. */
interface Said {
  tnx: string
  cid: string
}
type LibraryLogger = ReturnType<typeof debugOnly>
const hidden = '/* secured */'

/** Characters of a command or reply that are logged. */
const maxSaid = 2048

/** The library's logger: at debug, every command and reply is logged, but no message and nothing of AUTH; else nothing. */
export function dialogueLogger(log: Log, addressOf: (session: string) => string | undefined): LibraryLogger {
  if (!log.isLevelEnabled('debug')) return debugOnly(() => undefined)
  return debugOnly((said, _format, text = '') => {
    const { tnx, cid: session } = said as Said
    const ip = addressOf(session)
    if (tnx === 'send') log.debug({ session, ip, reply: loggable(text, maxSaid) }, 'SMTP reply')
    else if (tnx === 'command') {
      const command = text === hidden ? '(secret)' : redactCommand(text)
      log.debug({ session, ip, command: loggable(command, maxSaid) }, 'SMTP command')
    }
  })
}

/** Commands that are shown whole, and those whose name alone is. */
const whole = /^(?:HELO|EHLO|MAIL|RCPT)$/i
const named =
  /^(?:AUTH|BDAT|DATA|ETRN|EXPN|HELP|NOOP|QUIT|RSET|STARTTLS|TURN|VRFY|XCLIENT|XFORWARD|CONNECT|GET|HEAD|OPTIONS|POST|PUT)$/i

/** Octets of a command that are read for it. */
const longest = 2048

/** An SMTP command as the log may have it: what is no command may be a password in the wrong place, and AUTH may hold one. */
export function redactCommand(command: string | Buffer): string {
  const text = typeof command === 'string' ? command.slice(0, longest) : command.subarray(0, longest).toString()
  const name = /^[^\s:]*/.exec(text)![0]
  if (whole.test(name)) return text
  return named.test(name) ? name.toUpperCase() : `(${command.length} octets that are no command)`
}
