/** Local parts that are no identity's own on any domain: their mail is for who runs the box (RFC 5321 4.5.1, RFC 2142 4 and 5), or for the box itself. */
export const boxNames: ReadonlySet<string> = new Set([
  'postmaster',
  'abuse',
  'hostmaster',
  'mailer-daemon',
  'bounce',
  'dmarc',
  'tlsrpt',
  'security',
])

/** Names under which nothing is received. */
const silent = ['no-reply', 'noreply', 'mailer-daemon']

/**
 * Names that speak for a domain: those of RFC 2142, those at which certificate authorities ask whether a certificate may be issued (CA/Browser Forum,
 * Baseline Requirements 3.2.2.4.4) or asked before those, and what people take for its operator.
 */
const roles =
  `abuse admin administrator ftp hostmaster info is it marketing mis news noc postmaster root sales security ssladmin ssladministrator
  sslwebmaster support sysadmin usenet uucp webmaster www`.split(/\s+/)

const folded = new Set([...roles, ...silent, ...boxNames].map(fold))

/** Whether a name speaks for its domain, also with dots, hyphens or underscores in it: `ad-min`, `no.reply`. */
export function isRoleName(name: string): boolean {
  return folded.has(fold(name))
}

/** The names that speak for a domain and receive, as they are written. */
export const receivingRoles: ReadonlySet<string> = new Set(roles)

function fold(name: string): string {
  return name.replaceAll(/[._-]/g, '')
}
