/** The size of a header, and of padding units, in bytes (POSIX.1-1988, ustar). */
export const block = 512

export function padded(size: number): number {
  return Math.ceil(size / block) * block
}

/** The header of a file with mode 0600; `modified` in seconds since 1970. */
export function tarHeader(name: string, size: number, modified: number): Buffer {
  const header = Buffer.alloc(block)
  header.write(name, 0, 100, 'ascii')
  header.write('0000600\0', 100)
  header.write('0000000\0', 108)
  header.write('0000000\0', 116)
  writeSize(header, size)
  header.write(`${modified.toString(8).padStart(11, '0')}\0`, 136)
  header.write('        ', 148)
  header.write('0', 156)
  header.write('ustar\x0000', 257, 'latin1')
  header.write('pillarbox\0', 265)
  header.write('pillarbox\0', 297)
  header.write(
    `${header
      .reduce((sum, octet) => sum + octet, 0)
      .toString(8)
      .padStart(6, '0')}\0 `,
    148,
  )
  return header
}

/** Parses a header; undefined when it is not exactly as `tarHeader` writes it. */
export function readTarHeader(header: Buffer): { name: string; size: number; modified: number } | undefined {
  const end = header.indexOf(0)
  const name = header.toString('ascii', 0, Math.min(end === -1 ? 100 : end, 100))
  const size = readSize(header)
  const modified = Number.parseInt(header.toString('ascii', 136, 147), 8)
  if (!Number.isSafeInteger(size) || size < 0 || !Number.isSafeInteger(modified) || modified < 0) return undefined
  return tarHeader(name, size, modified).equals(header) ? { name, size, modified } : undefined
}

/** Octal, and from 8 GiB on in base 256, which GNU tar, BSD tar, busybox and Python read. */
function writeSize(header: Buffer, size: number): void {
  if (size < 8 ** 11) header.write(`${size.toString(8).padStart(11, '0')}\0`, 124)
  else {
    header[124] = 0x80
    header.writeBigUInt64BE(BigInt(size), 128)
  }
}

function readSize(header: Buffer): number {
  return header[124] === 0x80 ? Number(header.readBigUInt64BE(128)) : Number.parseInt(header.toString('ascii', 124, 135), 8)
}
