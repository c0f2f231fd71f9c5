import { confirm, intro, isCancel, text } from '@clack/prompts'
import { Failure } from './failure.ts'

/** Says what the questions are for. */
export function begin(title: string): void {
  intro(title)
}

/** One line; `flaw` says what is wrong with it, if something is. Throws Failure when whoever sits in front goes away. */
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

/** Yes or no. Throws Failure when whoever sits in front goes away. */
export async function askYes(message: string, usual = true): Promise<boolean> {
  const answer = await confirm({ message, initialValue: usual })
  if (isCancel(answer)) throw left()
  return answer
}

function left(): Failure {
  return new Failure('Nothing was changed.', 'cancelled')
}
