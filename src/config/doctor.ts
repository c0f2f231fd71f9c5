import { Address, Group, List, MailDomain, WebAddress } from './values.ts'

/** Looking after the box. */
export const doctor = Group({
  addresses: List(Address, 'addresses')
    .prefault([])
    .meta({
      description: 'Public addresses of this machine, if they differ from the addresses that hostname resolves to here',
      example: ['192.0.2.25', '2001:db8::25'],
    }),
  blocklists: List(MailDomain, 'domains').prefault(['zen.spamhaus.org', 'bl.spamcop.net', 'psbl.surriel.com']).meta({
    description: 'DNS block lists in which the public addresses are looked up every 6 hours; [] turns this off',
  }),
  probe_domain: MailDomain.prefault('gmail.com').meta({
    description:
      'Domain whose mail server is contacted every 6 hours to check that outgoing port 25 is open; only from a public address, and only while no other mail is being sent',
  }),
  time_url: WebAddress.optional().meta({
    description: 'HTTPS URL whose Date header the clock is compared with',
    otherwise: "the system's time synchronization is checked (timedatectl, chronyc)",
    example: 'https://www.example.com',
  }),
})
