/** Octets from which memory is worth giving back at once. */
const large = 16 * 1024

/**
 * Gives the memory of large octets back now, not when garbage is collected: V8 lets 64 MB of buffers gather before it looks for those that
 * nobody uses. They are empty afterwards, so nobody may need them any more. Octets that share their memory with others are left alone.
 */
export function release(octets: Uint8Array): void {
  const { buffer } = octets
  if (octets.length < large || octets.length !== buffer.byteLength || !(buffer instanceof ArrayBuffer)) return
  buffer.transfer(0)
}
