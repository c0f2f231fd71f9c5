/** An address of ours, taken apart: `ada+news@box.test` → local `ada`, tag `news`. The domain is lower-case ASCII. */
export interface Mailbox {
  local: string
  tag: string | null
  domain: string
}

/** Takes apart what `RCPT TO` named; bare `postmaster` is that of the default domain (RFC 5321 4.5.1). */
export function mailbox(address: string, defaultDomain: string): Mailbox {
  const at = address.lastIndexOf('@')
  // other letters are no spelling of ASCII ones (U+212A is no k), here as where mail is sent
  const whole = (at < 0 ? address : address.slice(0, at)).replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase())
  const domain = at < 0 ? defaultDomain : address.slice(at + 1).toLowerCase()
  const plus = whole.indexOf('+')
  return plus < 1 ? { local: whole, tag: null, domain } : { local: whole.slice(0, plus), tag: whole.slice(plus + 1), domain }
}

/** The mailboxes that every domain has, for its operator (RFC 5321 4.5.1, RFC 2142). */
export const operatorMailboxes: ReadonlySet<string> = new Set(['postmaster', 'abuse'])
