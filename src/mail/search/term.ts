/** A word, a phrase or the beginning of a word, in one of the texts or in any. */
export interface Term {
  column: 'sender' | 'subject' | undefined
  text: string
  prefix: boolean
}
