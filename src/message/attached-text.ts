import { TextDecoder } from 'node:util'

/** An attachment of text as a scan reads it. */
export interface AttachedText {
  text: string
  /** False where there is more in it than that text says: octets of a program or an archive, or a part of a message in base64. */
  isWhole: boolean
}

/** Reads an attachment that is declared to be text, by its byte order mark or its character set. */
export function attachedText(content: Buffer, charset: string | null, contentType: string): AttachedText {
  const text = decoderOf(content, charset).decode(content)
  const isEncoded = /^message\//i.test(contentType) && encoded.test(text)
  return { text, isWhole: !isEncoded && !noText.test(text) }
}

/** A part of a forwarded message that is not written as it is read. */
const encoded = /^content-transfer-encoding:\s*(?:base64|quoted-printable|x-uuencode)/im

/** Characters that no text has, nor one that was read with a wrong character set. */
// eslint-disable-next-line no-control-regex -- these are what is looked for
const noText = /[\0-\x08\x0e-\x1a\x1c-\x1f]/

function decoderOf(content: Buffer, charset: string | null): TextDecoder {
  const [first, second] = content
  if (first === 0xff && second === 0xfe) return new TextDecoder('utf-16le')
  if (first === 0xfe && second === 0xff) return new TextDecoder('utf-16be')
  try {
    return new TextDecoder(charset ?? 'utf-8')
  } catch {
    return new TextDecoder('utf-8')
  }
}
