/** Bytes below which the parts of a message are copied into one buffer: that takes less memory than several buffers. */
const short = 4096

/**
 * A text message in one frame, as servers send it, not masked (RFC 6455 5.2). Its octets are the same for every client, so that all that are sent the
 * same message share them. Long parts are not copied.
 */
export function textFrame(...parts: readonly (string | Buffer)[]): readonly Buffer[] {
  const payload = parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part))
  const length = lengthOf(payload)
  const frame = [head(length), ...payload]
  return length < short ? [Buffer.concat(frame)] : frame
}

export function lengthOf(buffers: readonly Buffer[]): number {
  let length = 0
  for (const buffer of buffers) length += buffer.length
  return length
}

/** FIN, the opcode of text, and the length in as few bytes as it takes. */
function head(length: number): Buffer {
  if (length < 126) return Buffer.from([0x81, length])
  if (length < 65_536) return Buffer.from([0x81, 126, length >> 8, length & 255])
  const octets = Buffer.from([0x81, 127, 0, 0, 0, 0, 0, 0, 0, 0])
  octets.writeBigUInt64BE(BigInt(length), 2)
  return octets
}
