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
    description: 'Host name of the relay, which its certificate must name; or its address if tls is none',
    example: 'smtp.example.net',
  }),
  port: Whole(1, 65_535).prefault(587).meta({ description: 'Port of the relay', unit: 'port' }),
  tls: Choice(['starttls', 'implicit', 'none']).prefault('starttls').meta({
    description: 'starttls and implicit verify the certificate; none is for a relay on this machine, and does not authenticate',
  }),
  user: Text('a user name')
    .optional()
    .meta({ description: 'User name, if the relay requires authentication', example: 'pillarbox' }),
  password: Text('a password').optional().meta({ description: 'Password for the relay', secret: true }),
}

/** Outgoing mail. */
export const outbound = Group({
  mode: Choice(['direct', 'relay', 'none']).prefault('direct').meta({
    description: 'Route of outgoing mail: directly to the MX hosts of each recipient domain, through outbound.relay, or disabled',
  }),
  relay: Group(relay).optional().meta({ description: 'Relay for all mail when the mode is relay' }),
  relays: List(Group({ domains: List(MailDomain, 'domains').meta({ description: 'Recipient domains' }), ...relay }), 'relays')
    .prefault([])
    .meta({
      description: 'Relays for certain recipient domains, in every mode',
      example: [{ domains: ['example.net'], host: 'smtp.example.net' }],
    }),
  unverified_domains: Choice(['refuse', 'relay']).prefault('refuse').meta({
    description:
      'Whether mail from a domain of the box that is not verified can be sent to other servers: never, or through outbound.relay and outbound.relays; receivers may take such mail for forged, as SPF and DMARC do not pass unless the relay sees to them',
  }),
  port: Whole(1, 65_535).prefault(25).meta({ description: 'Port of other mail servers', unit: 'port' }),
  allow_networks: List(AddressBlock, 'address blocks')
    .prefault([])
    .meta({
      description: 'Private networks that mail may be delivered to, in addition to public addresses',
      example: ['192.168.1.0/24'],
    }),
  ipv6: Switch.prefault(true).meta({ description: 'Connects to other mail servers over IPv6 too' }),
  mta_sts: Switch.prefault(true).meta({ description: 'Enforces the MTA-STS policies of recipient domains (RFC 8461)' }),
  dane: Switch.prefault(false).meta({
    description: 'Enforces DANE TLSA records (RFC 7672); requires dns.servers that validate DNSSEC, over a trusted path',
  }),
  rate_per_identity: Whole(0, 1_000_000)
    .prefault(200)
    .meta({ description: 'Sending limit of one identity; 0 means no limit', unit: 'recipients an hour' }),
  rate_per_domain: Whole(0, 10_000_000)
    .prefault(2000)
    .meta({ description: 'Sending limit of all identities of one domain; 0 means no limit', unit: 'recipients an hour' }),
  automatic_replies: Whole(0, 1000).prefault(3).meta({
    description: 'Limit of automatic replies in one thread to one address, which stops mail loops between two programs',
    unit: 'replies a day',
  }),
  warm_up: Group({
    first_day: Whole(1, 1_000_000)
      .prefault(50)
      .meta({ description: 'Sending limit of a new domain on its first day', unit: 'recipients' }),
    growth: z
      .number({ error: 'must be a number from 1 to 10' })
      .min(1, { error: 'must be a number from 1 to 10' })
      .max(10, { error: 'must be a number from 1 to 10' })
      .prefault(1.5)
      .meta({ description: 'Factor by which the limit grows each day' }),
    days: Whole(1, 365).prefault(30).meta({ description: 'Number of days until the limit ends', unit: 'days' }),
  })
    .optional()
    .meta({ description: 'Raises the sending limit of a new domain from day to day, as large receivers expect' }),
})

interface RelayFields {
  host: string
  tls: 'starttls' | 'implicit' | 'none'
  user?: string | undefined
  password?: string | undefined
}

/** Faults of settings in combination. */
export interface SettingFlaw {
  /** The place in the settings. */
  path: (string | number)[]
  why: string
}

/** A permission for relays without one, and relays that cannot be used: with a user but no password or the reverse, and by IP address where the certificate must name the host. */
export function relayFlaws(settings: {
  mode: 'direct' | 'relay' | 'none'
  relay?: RelayFields | undefined
  relays: RelayFields[]
  unverified_domains: 'refuse' | 'relay'
}): SettingFlaw[] {
  const { mode, unverified_domains } = settings
  const unused = unverified_domains === 'relay' && mode !== 'relay' && settings.relays.length === 0
  const why = `can be relay only if mail goes through a relay: set outbound.mode to relay and outbound.relay, or outbound.relays (outbound.mode is ${mode})`
  const permission = unused ? [{ path: ['outbound', 'unverified_domains'], why }] : []
  const one = settings.relay ? flawsOf(settings.relay, ['outbound', 'relay']) : []
  return [...permission, ...one, ...settings.relays.flatMap((entry, index) => flawsOf(entry, ['outbound', 'relays', index]))]
}

function flawsOf({ host, tls, user, password }: RelayFields, path: SettingFlaw['path']): SettingFlaw[] {
  const why = `must be a host name where TLS is verified (tls: ${tls}), because the certificate names it; an address requires tls: none`
  return [
    ...(isIP(host) > 0 && tls !== 'none' ? [{ path: [...path, 'host'], why }] : []),
    ...loginFlaws({ user, password }, path),
  ]
}

function loginFlaws({ user, password }: Pick<RelayFields, 'user' | 'password'>, path: SettingFlaw['path']): SettingFlaw[] {
  if (user === undefined && password === undefined) return []
  if (user === undefined) return [{ path: [...path, 'user'], why: 'is required with a password' }]
  return password === undefined ? [{ path: [...path, 'password'], why: 'is required with a user' }] : []
}

/** Message submission (RFC 6409) by identities. */
export const submission = Group({
  listen: List(Listen, 'listeners')
    .prefault([])
    .meta({
      description: 'Listener for message submission with STARTTLS and an API key (RFC 6409): host:port; off by default',
      example: ['0.0.0.0:587'],
      restart: true,
    }),
  listen_tls: List(Listen, 'listeners')
    .prefault([])
    .meta({
      description: 'Listener for message submission with implicit TLS (RFC 8314): host:port; off by default',
      example: ['0.0.0.0:465'],
      restart: true,
    }),
  max_failed_logins: Whole(1, 100_000).prefault(5).meta({
    description:
      'Limit of different failed logins from one address within 15 minutes (IPv6: one /64; 4 times as many from a /56, 16 times from a /48); further logins are rejected, and a repeated login is not counted again',
    unit: 'logins',
  }),
  failed_login_delay: Duration(0, 30_000)
    .prefault('1 s')
    .meta({ description: 'Delay of the reply to a failed login', unit: time }),
})

/** Requests to URLs given by callers, and to issuers of tokens. */
export const fetching = Group({
  allow_networks: List(AddressBlock, 'address blocks')
    .prefault([])
    .meta({
      description:
        'Private networks that may be reached for URLs given by callers (attachments) and for issuers of identity tokens, over plain http too; otherwise only https to public addresses',
      example: ['192.168.1.0/24'],
    }),
  ca_file: Text('the path of a file').optional().meta({
    description: 'PEM file with certificate authorities trusted for these requests, in addition to the usual ones',
    file: true,
    example: 'tls/authorities.pem',
  }),
})

/** Reports to other domains. */
export const reports = Group({
  dmarc: Switch.prefault(false).meta({
    description: 'Sends a daily DMARC aggregate report to each domain that requests it (RFC 9990)',
  }),
  tls: Switch.prefault(false).meta({
    description: 'Sends a daily TLS report (TLSRPT) to each domain that requests it (RFC 8460)',
  }),
  organization: Text('a name').optional().meta({
    description: 'Name of the reporting organization',
    otherwise: 'mail.domain',
    example: 'Example Corporation',
  }),
  contact: MailAddress.optional().meta({
    description: 'Contact address for questions about a report',
    otherwise: 'postmaster@ mail.domain',
    example: 'postmaster@example.com',
  }),
})
