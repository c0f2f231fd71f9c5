/** Why a command could not do what it was asked: a sentence that says what is wrong and what would be right. */
export class Failure extends Error {
  /** A stable word for programs. */
  readonly code: string | undefined
  /** Which argument or field is wrong. */
  readonly param: string | undefined

  constructor(message: string, code?: string, param?: string) {
    super(message)
    this.name = 'Failure'
    this.code = code
    this.param = param
  }
}
