import { Group, MailAddress, Switch, Text } from './values.ts'

/** Reports to other domains. */
export const reports = Group({
  dmarc: Switch.prefault(false).meta({
    description: 'Send domains that ask for it a daily report on the mail that came in their name (DMARC, RFC 9990)',
  }),
  tls: Switch.prefault(false).meta({
    description: 'Send domains that ask for it a daily report on TLS with their mail servers (TLSRPT, RFC 8460)',
  }),
  organization: Text('a name').optional().meta({
    description: 'The name of who reports',
    otherwise: 'mail.domain',
    example: 'Example Corporation',
  }),
  contact: MailAddress.optional().meta({
    description: 'Whom to write to about a report',
    otherwise: 'postmaster@ mail.domain',
    example: 'postmaster@example.com',
  }),
})
