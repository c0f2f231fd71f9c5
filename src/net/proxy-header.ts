import { isIPv4, isIPv6 } from 'node:net'
import { canonicalAddress } from './networks.ts'

/** The client of a proxied connection. */
interface ProxiedClient {
  address: string
  port: number
}

interface ProxyHeader {
  /** Bytes of the header. */
  length: number
  /** Null for a connection of the proxy itself, such as a health check, and where the proxy does not know the client. */
  client: ProxiedClient | null
}

/** Of version 1, without CRLF the bytes of the longest line that the specification allows. */
const maxLine = 107

/** Of version 2, with its TLVs; its addresses have 216 at most. */
const maxBinary = 4096

const text = Buffer.from('PROXY ', 'latin1')
const signature = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')

/** Of version 2: the length of the addresses of each family, with their ports. */
const addressBytes = { 1: 12, 2: 36, 3: 216 } as const

/**
 * Reads the header of the PROXY protocol, version 1 or 2, at the beginning of `received` (https://www.haproxy.org/download/2.6/doc/proxy-protocol.txt).
 * Undefined when more has to arrive; the reason, as a text, when it is none.
 */
export function readProxyHeader(received: Buffer): ProxyHeader | string | undefined {
  if (beginsLike(received, signature)) return received.length < 16 ? undefined : readBinary(received)
  if (beginsLike(received, text)) return received.length < text.length ? undefined : readLine(received)
  return 'it does not begin with a PROXY protocol header'
}

/** True if the one begins with the other, as far as it has arrived. */
function beginsLike(received: Buffer, expected: Buffer): boolean {
  const length = Math.min(received.length, expected.length)
  return received.compare(expected, 0, length, 0, length) === 0
}

function readLine(received: Buffer): ProxyHeader | string | undefined {
  const end = received.subarray(0, maxLine).indexOf('\r\n')
  if (end === -1) return received.length < maxLine ? undefined : `its PROXY line is longer than ${maxLine} bytes`
  const [, family, source = '', destination = '', ...ports] = received.toString('latin1', 0, end).split(' ')
  const length = end + 2
  // the rest of the line is not defined
  if (family === 'UNKNOWN') return { length, client: null }
  const isAddress = family === 'TCP4' ? isIPv4 : family === 'TCP6' ? isIPv6 : () => false
  const areAddresses = [source, destination].every((address) => isAddress(address) && !address.includes('%'))
  if (!areAddresses || ports.length !== 2 || !ports.every(isPort)) return 'its PROXY line is malformed'
  return { length, client: { address: canonicalAddress(source)!, port: Number(ports[0]) } }
}

function isPort(digits: string): boolean {
  return /^(?:0|[1-9]\d{0,4})$/.test(digits) && Number(digits) <= 65_535
}

function readBinary(received: Buffer): ProxyHeader | string | undefined {
  const version = received[12]! >> 4
  const command = received[12]! & 15
  const family = received[13]! >> 4
  const transport = received[13]! & 15
  const length = 16 + received.readUInt16BE(14)
  if (version !== 2 || command > 1) return 'its PROXY header has an unknown version or command'
  if (length > maxBinary) return `its PROXY header is longer than ${maxBinary} bytes`
  if (received.length < length) return undefined
  // LOCAL: a health check; what follows is not looked at
  if (command === 0) return { length, client: null }
  if (family > 3 || transport > 2) return 'its PROXY header has an unknown address family or transport'
  if (family === 0 || transport === 0) return { length, client: null }
  if (length < 16 + addressBytes[family as keyof typeof addressBytes]) return 'its PROXY header is too short for its addresses'
  if (transport === 2) return 'its PROXY header is not of a TCP connection'
  if (family === 3) return { length, client: null }
  const size = family === 1 ? 4 : 16
  return { length, client: { address: addressOf(received.subarray(16, 16 + size)), port: received.readUInt16BE(16 + 2 * size) } }
}

function addressOf(bytes: Buffer): string {
  if (bytes.length === 4) return bytes.join('.')
  const groups = Array.from({ length: 8 }, (_, index) => bytes.readUInt16BE(2 * index).toString(16))
  return canonicalAddress(groups.join(':'))!
}

/** The header of a connection that a program makes for itself (version 2, LOCAL). */
export const localHeader: Buffer = Buffer.concat([signature, Buffer.from([0x20, 0, 0, 0])])
