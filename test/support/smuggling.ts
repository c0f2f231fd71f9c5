/** Each stands where a lenient server would see the end of the message; `\r\n..\r\n` is a line with one dot, well formed. */
export const smugglers = [
  '\n.\n',
  '\n.\r\n',
  '\r\n.\n',
  '\r.\r',
  '\r\n.\r',
  '\r.\r\n',
  '\n.\r',
  '\r\n.\r\r\n',
  '\r\n.\0\r\n',
  '\r\n\0.\r\n',
  '\r\r\n.\r\n',
  '\r\n..\r\n',
]

/** The commands and the message that such a server would then take for a second one. */
export function smuggled(from: string, to: string, header: string): string {
  return `MAIL FROM:<${from}>\r\nRCPT TO:<${to}>\r\nDATA\r\n${header}\r\n\r\nX\r\n.\r\n`
}
