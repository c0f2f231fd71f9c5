import { headerText } from './trace.ts'

/** Whether the message says that it was delivered to this address before, as forwarders note against loops (RFC 9228). */
export function deliveredBefore(raw: Buffer, recipients: string[]): boolean {
  const header = Buffer.from(headerText(raw), 'latin1').toString()
  const addresses = new Set(recipients.map((recipient) => recipient.toLowerCase()))
  return [...header.matchAll(deliveredTo)].some(([, value = '']) => addresses.has(bare(value)))
}

const deliveredTo = /^delivered-to[ \t]*:([^\r\n]*(?:\r\n[ \t][^\r\n]*)*)/gim

function bare(value: string): string {
  const text = value.trim().toLowerCase()
  return text.startsWith('<') && text.endsWith('>') ? text.slice(1, -1).trim() : text
}
