import { isIP } from 'node:net'
import * as z from 'zod'
import {
  AddressBlock,
  Choice,
  Duration,
  Group,
  Host,
  List,
  Listen,
  MailAddress,
  MailDomain,
  Switch,
  Text,
  time,
  Whole,
} from './values.ts'

const relay = {
  host: Host.meta({
    description: 'Its name, which its certificate must bear; or its address, where tls is none',
    example: 'smtp.example.net',
  }),
  port: Whole(1, 65_535).prefault(587).meta({ description: 'Where it listens', unit: 'port' }),
  tls: Choice(['starttls', 'implicit', 'none']).prefault('starttls').meta({
    description: 'starttls and implicit check the certificate; none is for a relay on this machine, and logs in nowhere',
  }),
  user: Text('a user name').optional().meta({ description: 'Who logs in, if somebody must', example: 'pillarbox' }),
  password: Text('a password').optional().meta({ description: 'With which password', secret: true }),
}

/** Mail to others. */
export const outbound = Group({
  mode: Choice(['direct', 'relay', 'none'])
    .prefault('direct')
    .meta({ description: "How mail leaves: to each recipient's own server, through outbound.relay, or not at all" }),
  relay: Group(relay).optional().meta({ description: 'The server that takes all mail when the mode is relay' }),
  relays: List(Group({ domains: List(MailDomain, 'domains').meta({ description: 'Recipient domains' }), ...relay }), 'relays')
    .prefault([])
    .meta({
      description: 'Servers that take the mail for certain recipient domains, whatever the mode',
      example: [{ domains: ['example.net'], host: 'smtp.example.net' }],
    }),
  port: Whole(1, 65_535).prefault(25).meta({ description: 'The port that other mail servers are reached at', unit: 'port' }),
  allow_networks: List(AddressBlock, 'address blocks')
    .prefault([])
    .meta({
      description: 'Private networks that mail may be delivered to; without one, only public addresses are reached',
      example: ['192.168.1.0/24'],
    }),
  ipv6: Switch.prefault(true).meta({ description: 'Reach other mail servers over IPv6 too' }),
  mta_sts: Switch.prefault(true).meta({ description: 'Follow what domains publish of TLS to their servers (MTA-STS, RFC 8461)' }),
  dane: Switch.prefault(false).meta({
    description: 'Follow TLSA records (RFC 7672); only with dns.servers that validate DNSSEC and are reached safely',
  }),
  rate_per_identity: Whole(0, 1_000_000)
    .prefault(200)
    .meta({ description: 'What one identity may send; 0 means no limit', unit: 'recipients an hour' }),
  rate_per_domain: Whole(0, 10_000_000)
    .prefault(2000)
    .meta({ description: 'What all identities of one domain may send; 0 means no limit', unit: 'recipients an hour' }),
  automatic_replies: Whole(0, 1000).prefault(3).meta({
    description: 'Automatic replies in one thread to one address; more could be two programs in a loop',
    unit: 'replies a day',
  }),
  warm_up: Group({
    first_day: Whole(1, 1_000_000)
      .prefault(50)
      .meta({ description: 'What a new domain may send on its first day', unit: 'recipients' }),
    growth: z
      .number({ error: 'must be a number from 1 to 10' })
      .min(1, { error: 'must be a number from 1 to 10' })
      .max(10, { error: 'must be a number from 1 to 10' })
      .prefault(1.5)
      .meta({ description: 'By how much a day may exceed the one before' }),
    days: Whole(1, 365).prefault(30).meta({ description: 'After which there is no ramp any more', unit: 'days' }),
  })
    .optional()
    .meta({ description: 'Let a new domain send more from day to day, as large receivers like it' }),
})

interface RelayFields {
  host: string
  tls: 'starttls' | 'implicit' | 'none'
  user?: string | undefined
  password?: string | undefined
}

/** What is wrong with settings together. */
export interface SettingFlaw {
  /** The place in the settings. */
  path: (string | number)[]
  why: string
}

/** Relays that could not be used: half logins, with which mail would be refused, and addresses, which no certificate vouches for. */
export function relayFlaws(settings: { relay?: RelayFields | undefined; relays: RelayFields[] }): SettingFlaw[] {
  const one = settings.relay ? flawsOf(settings.relay, ['outbound', 'relay']) : []
  return [...one, ...settings.relays.flatMap((entry, index) => flawsOf(entry, ['outbound', 'relays', index]))]
}

function flawsOf({ host, tls, user, password }: RelayFields, path: SettingFlaw['path']): SettingFlaw[] {
  const why = `must be a name where TLS is checked (tls: ${tls}), for its certificate bears the name; an address needs tls: none`
  return [
    ...(isIP(host) > 0 && tls !== 'none' ? [{ path: [...path, 'host'], why }] : []),
    ...loginFlaws({ user, password }, path),
  ]
}

function loginFlaws({ user, password }: Pick<RelayFields, 'user' | 'password'>, path: SettingFlaw['path']): SettingFlaw[] {
  if (user === undefined && password === undefined) return []
  if (user === undefined) return [{ path: [...path, 'user'], why: 'is needed with a password' }]
  return password === undefined ? [{ path: [...path, 'password'], why: 'is needed with a user' }] : []
}

/** Mail that identities hand in by SMTP. */
export const submission = Group({
  listen: List(Listen, 'listeners')
    .prefault([])
    .meta({
      description: 'Where programs hand in mail with STARTTLS and an API key (RFC 6409): host:port; off without one',
      example: ['0.0.0.0:587'],
      restart: true,
    }),
  listen_tls: List(Listen, 'listeners')
    .prefault([])
    .meta({ description: 'The same with TLS from the first octet (RFC 8314)', example: ['0.0.0.0:465'], restart: true }),
  max_failed_logins: Whole(1, 100_000).prefault(5).meta({
    description:
      'Different failed logins from one address (IPv6: one /64; 4 times as many from a /56, 16 times from a /48) within 15 minutes, after which no other is tried; the same one again does not count',
    unit: 'logins',
  }),
  failed_login_delay: Duration(0, 30_000)
    .prefault('1 s')
    .meta({ description: 'How long the answer to a failed login takes', unit: time }),
})

/** What is fetched because a caller named its URL, or a token its issuer. */
export const fetching = Group({
  allow_networks: List(AddressBlock, 'address blocks')
    .prefault([])
    .meta({
      description:
        'Private networks that URLs of callers (attachments) and issuers of identity tokens may lead to, over plain http too; else https to public addresses',
      example: ['192.168.1.0/24'],
    }),
  ca_file: Text('the path of a file').optional().meta({
    description: 'PEM file with certificate authorities that are believed there, beside those everybody believes',
    file: true,
    example: 'tls/authorities.pem',
  }),
})

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
