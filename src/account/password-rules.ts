import { invalid } from '../core/fault.ts'
import { commonPasswords } from './common-passwords.ts'

/** Characters. */
const shortest = 8
const longest = 256

/**
 * Throws Fault 400 unless this may be a password (NIST SP 800-63B 3.1.1.2): length counts, and that it is not the first that somebody
 * would try; which kinds of characters it has does not.
 */
export function requirePassword(password: string, email: string): void {
  const letters = password.normalize('NFC')
  const characters = Array.from(letters).length
  if (characters < shortest || characters > longest) {
    throw invalid(
      'password',
      `password must have ${shortest} to ${longest} characters; it has ${characters}.`,
      'invalid_password',
    )
  }
  const folded = letters.toLowerCase()
  const [local = ''] = email.toLowerCase().split('@')
  if (folded === email.toLowerCase() || folded === local) {
    throw invalid('password', 'password must not be the e-mail address.', 'invalid_password')
  }
  if (commonPasswords.has(folded) || new Set(folded).size === 1) {
    throw invalid('password', 'password must not be one of those that everybody tries first.', 'common_password')
  }
}
