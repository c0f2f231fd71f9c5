/** What an SMTP client is told when we do not take its mail: reply code, enhanced code (RFC 3463) and one line of text. */
export class Refusal extends Error {
  readonly code: number
  readonly enhanced: string
  readonly text: string

  constructor(code: number, enhanced: string, text: string) {
    super(`${code} ${enhanced} ${text}`)
    this.name = 'Refusal'
    this.code = code
    this.enhanced = enhanced
    this.text = text
  }
}
