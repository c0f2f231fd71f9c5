/** The quote marks of a line, and the space after them (RFC 3676 4.4 and 4.5); some software puts a space between marks too. */
const stuffing = /^(?:>(?: ?>)*)? ?/

/**
 * A text of format=flowed with its paragraphs in one line each (RFC 3676 4.1): a line that ends with a space goes on in the next, if that is quoted as
 * deeply. A signature delimiter neither flows nor is flowed into. With `delSp` the space at the end is deleted.
 */
export function unflowed(octets: Buffer, delSp: boolean): Buffer {
  const lines: string[] = []
  /** The quote marks of the line that goes on; null if none does. */
  let open: string | null = null
  for (const line of octets.toString('latin1').split(/\r?\n/)) {
    const start = stuffing.exec(line)![0]
    const content = line.slice(start.length)
    const marks = start.replaceAll(' ', '')
    const isDelimiter = content === '-- '
    const isFlowing = content.endsWith(' ') && !isDelimiter
    const kept = isFlowing && delSp ? content.slice(0, -1) : content
    if (open === marks && !isDelimiter) lines[lines.length - 1] += kept
    else lines.push(marks === '' ? kept : start + kept)
    open = isFlowing ? marks : null
  }
  return Buffer.from(lines.join('\n'), 'latin1')
}
