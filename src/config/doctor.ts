import { Address, Group, List, MailDomain, WebAddress } from './values.ts'

/** Looking after the box. */
export const doctor = Group({
  addresses: List(Address, 'addresses')
    .prefault([])
    .meta({
      description: 'The public addresses of this machine, where they are not those that hostname has in the DNS as it sees it',
      example: ['192.0.2.25', '2001:db8::25'],
    }),
  blocklists: List(MailDomain, 'domains').prefault(['zen.spamhaus.org', 'bl.spamcop.net', 'psbl.surriel.com']).meta({
    description: 'DNS block lists that are asked every 6 hours whether they name our public addresses; [] asks none',
  }),
  probe_domain: MailDomain.prefault('gmail.com').meta({
    description:
      'Whose mail server is greeted every 6 hours, to see that port 25 is open outwards; only from a public address, and while no mail leaves anyway',
  }),
  time_url: WebAddress.optional().meta({
    description: 'Whose Date our clock is compared with',
    otherwise: 'the system is asked whether it keeps its clock right (timedatectl, chronyc)',
    example: 'https://www.example.com',
  }),
})
