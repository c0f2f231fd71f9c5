/** An attachment of a message. */
export interface File {
  /** Lower case; empty for a part without a valid type. */
  contentType: string
  filename: string | undefined
  /** As declared; undefined for none. */
  charset: string | undefined
  /** Lower case. */
  contentDisposition: string | undefined
  /** The Content-ID without its angle brackets. */
  cid: string | undefined
  /** True if it has a Content-ID and is inside of a multipart/related. */
  related: boolean
  /** Bytes of the content. */
  size: number
  /** SHA-256 of the content, in hexadecimal. */
  checksum: string
  /** Decoded; may be decoded anew each time. */
  readonly content: Buffer
}

/** The parsed MIME structure of a message. */
export interface Mime {
  subject: string | undefined
  text: string | undefined
  html: string | undefined
  files: File[]
  /**
   * True if HTML and text are not alternatives of each other (RFC 2046 5.1.4), such as a footer added by a mailing list. Then both are the
   * message.
   */
  areSeparateBodies: boolean
  /** True if the bodies have too many lines or bytes: then they were read up to there. */
  isCut: boolean
}
