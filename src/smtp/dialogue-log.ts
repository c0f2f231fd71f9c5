import { debugOnly, type Log, loggable } from '../core/log.ts'

/** The fields the library passes to its logger with a command or reply. */
interface LogEntry {
  tnx: string
  cid: string
}
type LibraryLogger = ReturnType<typeof debugOnly>

/** The library's text in place of what may hold a password. */
const hidden = '/* secured */'

/** Characters of a command or reply that are logged. */
const maxLogged = 2048

/** The library's logger. At level debug it logs every command and reply, except message content and AUTH; at other levels nothing. */
export function dialogueLogger(log: Log, addressOf: (session: string) => string | undefined): LibraryLogger {
  if (!log.isLevelEnabled('debug')) return debugOnly(() => undefined)
  return debugOnly((entry, _format, text = '') => {
    const { tnx, cid: session } = entry as LogEntry
    const ip = addressOf(session)
    if (tnx === 'send') log.debug({ session, ip, reply: loggable(text, maxLogged) }, 'SMTP reply')
    else if (tnx === 'command') {
      const command = text === hidden ? '(secret)' : redactCommand(text)
      log.debug({ session, ip, command: loggable(command, maxLogged) }, 'SMTP command')
    }
  })
}

/** Commands that are logged whole, and those of which only the name is logged. */
const whole = /^(?:HELO|EHLO|MAIL|RCPT)$/i
const named =
  /^(?:AUTH|BDAT|DATA|ETRN|EXPN|HELP|NOOP|QUIT|RSET|STARTTLS|TURN|VRFY|XCLIENT|XFORWARD|CONNECT|GET|HEAD|OPTIONS|POST|PUT)$/i

/** Bytes of a command that are inspected. */
const longest = 2048

/** An SMTP command fit for the log. Unknown commands may be misplaced passwords, and AUTH may hold one: both are hidden. */
export function redactCommand(command: string | Buffer): string {
  const text = typeof command === 'string' ? command.slice(0, longest) : command.subarray(0, longest).toString()
  const name = /^[^\s:]*/.exec(text)![0]
  if (whole.test(name)) return text
  return named.test(name) ? name.toUpperCase() : `(${command.length} bytes that are not a command)`
}
