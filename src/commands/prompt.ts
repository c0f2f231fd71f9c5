import { text } from 'node:stream/consumers'
import { isCancel, password } from '@clack/prompts'

/**
 * A password: typed unseen, twice, where somebody sits in front; else the first line of standard input. Never an argument, which every
 * process of the machine can read. Throws a sentence when there is none.
 */
export async function askPassword(): Promise<string> {
  if (process.stdin.isTTY) return typed()
  const [line = ''] = (await text(process.stdin)).split(/\r?\n/)
  if (line === '') throw new Error('No password came. Type it, or pass it as the first line of standard input.')
  return line
}

async function typed(): Promise<string> {
  const first = await password({ message: 'Password' })
  if (isCancel(first)) throw new Error('Nothing was changed.')
  const second = await password({ message: 'Again' })
  if (isCancel(second)) throw new Error('Nothing was changed.')
  if (first !== second) throw new Error('The two are not the same. Nothing was changed.')
  return first
}
