/**
 * Local parts that no identity may have on any domain: their mail is for the operator (RFC 5321 4.5.1, RFC 2142 4 and 5), or for the box
 * itself.
 */
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

/** Names that receive no mail. */
const silent = ['no-reply', 'noreply', 'mailer-daemon']

/**
 * Names that represent a domain: those of RFC 2142, those that certificate authorities use or used for validation (CA/Browser Forum,
 * Baseline Requirements 3.2.2.4.4), and those that people attribute to its operator.
 */
const roles =
  `abuse admin administrator ftp hostmaster info is it marketing mis news noc postmaster root sales security ssladmin ssladministrator
  sslwebmaster support sysadmin usenet uucp webmaster www`.split(/\s+/)

const folded = new Set([...roles, ...silent, ...boxNames].map(fold))

/** True if a name represents its domain, also with dots, hyphens or underscores in it: `ad-min`, `no.reply`. */
export function isRoleName(name: string): boolean {
  return folded.has(fold(name))
}

/** The role names that receive mail, in their usual spelling. */
export const receivingRoles: ReadonlySet<string> = new Set(roles)

function fold(name: string): string {
  return name.replaceAll(/[._-]/g, '')
}
