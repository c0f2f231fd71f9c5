import { text as whole } from 'node:stream/consumers'
import { confirm, intro, isCancel, password, text } from '@clack/prompts'
import { Failure } from './refuse.ts'

export function begin(title: string): void {
  intro(title)
}

/** Asks for one line; `flaw` returns an error message. Throws Failure when the input ends. */
export async function askLine(question: {
  message: string
  usual?: string | undefined
  optional?: boolean
  flaw: (line: string) => string | undefined
}): Promise<string | undefined> {
  const { message, usual, optional, flaw } = question
  const answer = await text({
    message,
    ...(usual === undefined ? {} : { placeholder: usual, defaultValue: usual }),
    validate: (line = '') => (line === '' && (optional || usual !== undefined) ? undefined : flaw(line)),
  })
  if (isCancel(answer)) throw left()
  return answer === '' ? undefined : answer
}

/** Asks yes or no. Throws Failure when the input ends. */
export async function askYes(message: string): Promise<boolean> {
  const answer = await confirm({ message, initialValue: true })
  if (isCancel(answer)) throw left()
  return answer
}

/**
 * Reads a password: twice without echo in a terminal; else the first line of standard input. Never an argument, which every process of the
 * machine can read. Throws Failure when there is none.
 */
export async function askPassword(): Promise<string> {
  if (process.stdin.isTTY) return typed()
  const [line = ''] = (await whole(process.stdin)).split(/\r?\n/)
  if (line === '') throw new Failure('No password was entered. Type it, or pass it as the first line of standard input.')
  return line
}

/** Asks for confirmation. Throws a sentence when the answer is no, or there is no terminal. */
export async function confirmed(question: string): Promise<void> {
  if (!process.stdin.isTTY) throw new Failure(`${question} Confirm with --yes.`, 'not_confirmed', 'yes')
  const answer = await confirm({ message: question, initialValue: false })
  if (isCancel(answer) || !answer) throw new Failure('Nothing was changed.', 'not_confirmed')
}

async function typed(): Promise<string> {
  const first = await password({ message: 'Password' })
  if (isCancel(first)) throw left()
  const second = await password({ message: 'Again' })
  if (isCancel(second)) throw left()
  if (first !== second) throw new Failure('The passwords do not match. Nothing was changed.')
  return first
}

function left(): Failure {
  return new Failure('Nothing was changed.', 'cancelled')
}
