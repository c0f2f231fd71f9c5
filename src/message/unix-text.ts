/** Decodes bytes as UTF-8 with LF line ends. Not by replace(), which takes a hundred times the memory for a text of nothing but line ends. */
export function unixText(bytes: Buffer): string {
  if (!bytes.includes(0x0d)) return bytes.toString('utf8')
  const kept = Buffer.allocUnsafe(bytes.length)
  let length = 0
  for (let at = 0; at < bytes.length; at += 1) {
    if (bytes[at] !== 0x0d || bytes[at + 1] !== 0x0a) kept[length++] = bytes[at]!
  }
  return kept.toString('utf8', 0, length)
}
