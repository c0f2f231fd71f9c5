/** Commands that are shown whole, and those whose name alone is. */
const whole = /^(?:HELO|EHLO|MAIL|RCPT)$/i
const named =
  /^(?:AUTH|BDAT|DATA|ETRN|EXPN|HELP|NOOP|QUIT|RSET|STARTTLS|TURN|VRFY|XCLIENT|XFORWARD|CONNECT|GET|HEAD|OPTIONS|POST|PUT)$/i

/** Octets of a command that are read for it. */
const longest = 2048

/** An SMTP command as the log may have it: what is no command may be a password in the wrong place, and AUTH may hold one. */
export function shownCommand(command: string | Buffer): string {
  const text = typeof command === 'string' ? command.slice(0, longest) : command.subarray(0, longest).toString()
  const name = /^[^\s:]*/.exec(text)![0]
  if (whole.test(name)) return text
  return named.test(name) ? name.toUpperCase() : `(${command.length} octets that are no command)`
}
