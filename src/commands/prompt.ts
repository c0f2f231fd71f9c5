import { text } from 'node:stream/consumers'
import { Failure } from './failure.ts'

/**
 * A password: typed unseen, twice, where somebody sits in front; else the first line of standard input. Never an argument, which every
 * process of the machine can read. Throws a sentence when there is none.
 */
export async function askPassword(): Promise<string> {
  if (process.stdin.isTTY) return typed()
  const [line = ''] = (await text(process.stdin)).split(/\r?\n/)
  if (line === '') throw new Failure('No password came. Type it, or pass it as the first line of standard input.')
  return line
}

/** Asks whether to go on. Throws a sentence when the answer is no, or nobody sits in front. */
export async function confirmed(question: string): Promise<void> {
  if (!process.stdin.isTTY) throw new Failure(`${question} Say so with --yes.`, 'not_confirmed', 'yes')
  const { confirm, isCancel } = await import('@clack/prompts')
  const answer = await confirm({ message: question, initialValue: false })
  if (isCancel(answer) || !answer) throw new Failure('Nothing was changed.', 'not_confirmed')
}

async function typed(): Promise<string> {
  const { isCancel, password } = await import('@clack/prompts')
  const first = await password({ message: 'Password' })
  if (isCancel(first)) throw new Failure('Nothing was changed.')
  const second = await password({ message: 'Again' })
  if (isCancel(second)) throw new Failure('Nothing was changed.')
  if (first !== second) throw new Failure('The two are not the same. Nothing was changed.')
  return first
}
