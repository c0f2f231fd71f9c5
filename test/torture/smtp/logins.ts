import { pick, type Random } from '../../support/random.ts'

/** Lines of AUTH, each sent after a reply of 334 to the one before, or at once. */
export interface Login {
  lines: string[]
  /** The name and the password are right. */
  right: boolean
  pipelined: boolean
}

/** Logins by AUTH (RFC 4954): right, wrong, aborted, malformed. */
export function loginOf(
  random: Random,
  { mailbox, user, password }: { mailbox: string; user: string; password: string },
  kind: 'right' | 'any' = 'any',
): Login {
  const plain = base64(`\0${user}\0${password}`)
  const rights = [
    [`AUTH PLAIN ${plain}`],
    ['AUTH PLAIN', plain],
    ['auth login', base64(user), base64(password)],
    [`AUTH LOGIN ${base64(user)}`, base64(password)],
  ]
  const wrongs = [
    [`AUTH PLAIN ${base64(`\0${user}\0wrong`)}`],
    [`AUTH PLAIN ${base64(`\0nobody@pillarbox.test\0${password}`)}`],
    // on behalf of another
    [`AUTH PLAIN ${base64(`${mailbox}\0${user}\0${password}`)}`],
    [`AUTH PLAIN ${base64(`\0\0`)}`],
    ['AUTH PLAIN', base64(`\0${user}\0`)],
    ['AUTH LOGIN', base64(user), base64('wrong')],
    ['AUTH LOGIN', base64(user), '='],
    ['AUTH PLAIN', '*'],
    ['AUTH LOGIN', '*'],
    ['AUTH LOGIN', base64(user), '*'],
    [`AUTH PLAIN ${'A'.repeat(3000)}`],
    [`AUTH PLAIN ${plain} ${plain}`],
    ['AUTH PLAIN', 'A'.repeat(3000)],
    ['AUTH PLAIN =', '*'],
    ['AUTH PLAIN !', '*'],
    ['AUTH'],
    ['AUTH CRAM-MD5', base64(`${user} 0123`)],
    [`AUTH XOAUTH2 ${plain}`],
  ]
  const right = kind === 'right' || random(3) === 0
  return { lines: pick(right ? rights : wrongs, random), right, pipelined: random(6) === 0 }
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}
