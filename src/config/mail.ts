import * as z from 'zod'
import { day, hour, second } from '../core/clock.ts'
import {
  AddressBlock,
  bytes,
  certificateFile,
  Choice,
  Duration,
  Group,
  keyFile,
  List,
  Listen,
  MailAddress,
  MailDomain,
  Size,
  Switch,
  Text,
  time,
  WebAddress,
  Whole,
} from './values.ts'

const listeners = 'must be host:port such as 127.0.0.1:2525, or a list of them'

/** Load balancers at the level of connections; of reverse proxies there is X-Forwarded-For. */
export const proxyProtocol = (where: string) =>
  List(AddressBlock, 'address blocks')
    .prefault([])
    .meta({
      description: `Load balancers whose connections to ${where} begin with a PROXY protocol header, version 1 or 2, that has the client's address (HAProxy: send-proxy-v2), as address blocks; a connection of theirs without it is closed`,
      example: ['10.0.0.1/32', 'fd00::1/128'],
    })

/** Receiving mail. */
export const smtp = Group({
  listen: z
    .union([z.string(), z.array(z.string()).min(1, { error: listeners })], { error: listeners })
    .transform((given) => (typeof given === 'string' ? [given] : given))
    .pipe(z.array(Listen))
    .prefault('127.0.0.1:2525')
    .meta({
      description: 'Listeners that receive mail: one host:port or a list; other mail servers deliver to port 25',
      restart: true,
    }),
  size: Size(65_536).prefault('25 MiB').meta({ description: 'Maximum size of a received message', unit: bytes }),
  max_memory: Size(0).prefault('64 MiB').meta({
    description:
      'Memory limit for all messages being received above 64 KiB, until they are on disk; beyond it a message of the network or account that holds most is deferred (452). It is never less than two messages of the maximum size; smaller messages need at most 64 KiB for each of max_connections in addition; the process itself needs about twice as much',
    unit: bytes,
  }),
  greeting_delay: Duration(0, 30_000).prefault('20 ms').meta({
    description: 'Delay before the greeting; a client that sends commands earlier is rejected',
    unit: time,
  }),
  proxy_protocol: proxyProtocol('the listeners of smtp and submission'),
  max_recipients: Whole(1, 10_000)
    .prefault(100)
    .meta({ description: 'Maximum number of recipients of a message', unit: 'recipients' }),
  max_connections: Whole(1, 100_000)
    .prefault(500)
    .meta({ description: 'Maximum number of open connections', unit: 'connections' }),
  max_connections_per_address: Whole(1, 100_000).prefault(20).meta({
    description:
      'Maximum number of open connections from one address (IPv6: one /64; 4 times as many from a /56, 16 times from a /48)',
    unit: 'connections',
  }),
  max_errors: Whole(1, 10_000)
    .prefault(20)
    .meta({ description: 'Number of rejected commands after which a connection is closed', unit: 'commands' }),
  max_commands: Whole(10, 100_000)
    .prefault(100)
    .meta({ description: 'Number of commands without a delivered message after which a connection is closed', unit: 'commands' }),
  idle_timeout: Duration(second, hour)
    .prefault('60 s')
    .meta({ description: 'Idle time after which a connection is closed', unit: time }),
  session_timeout: Duration(second, day).prefault('10 min').meta({
    description:
      'Maximum duration of a connection without a delivered message; a message being received may exceed it if it arrives at 500 bytes a second or faster',
    unit: time,
  }),
  max_received: Whole(1, 1000)
    .prefault(50)
    .meta({ description: 'Maximum number of Received fields; a message with more is rejected as a mail loop', unit: 'fields' }),
  tls: Group({ cert: certificateFile, key: keyFile }).optional().meta({
    description: 'Certificate for STARTTLS; without it the one obtained by ACME, else a self-signed one in <data_dir>/tls',
  }),
})

/** Processing of received mail. */
export const mail = Group({
  domain: MailDomain.prefault('pillarbox.test').meta({ description: 'Domain of new addresses', restart: true }),
  dmarc: Choice(['reject', 'quarantine', 'none']).prefault('reject').meta({
    description:
      'Strictest DMARC policy that is enforced: quarantine marks mail that should be rejected, none only records the result',
  }),
  trusted_sealers: List(MailDomain, 'domains')
    .prefault([])
    .meta({ description: 'Forwarders whose ARC seal overrides a DMARC failure (RFC 8617)', example: ['lists.example.com'] }),
  verdict_timeout: Duration(100, 300_000).prefault('15 s').meta({
    description: 'Timeout for all checks of a message; a check without a result by then counts as temperror',
    unit: time,
  }),
  strict_temperror: Switch.prefault(false).meta({
    description: 'Defers a message (451) when its checks meet a DNS failure, instead of accepting it with temperror recorded',
  }),
  quota: Size(0).prefault('1 GiB').meta({
    description:
      'Mail quota of one identity, including sent mail; ten times as much for the operator (postmaster, abuse). When it is full, mail is deferred (452) and none is sent; 0 means no limit',
    unit: bytes,
  }),
  list_bodies: Switch.prefault(false).meta({
    description:
      'Lists of e-mails have bodies without include=body, for clients that read them there; a page then has as many rows as fit into about 1 MiB',
  }),
  postmaster: MailAddress.optional().meta({
    description: 'Address to which mail for postmaster and abuse is forwarded; a copy is kept here',
    example: 'admin@example.net',
  }),
  mta_sts: Choice(['none', 'testing', 'enforce']).prefault('testing').meta({
    description: 'MTA-STS policy published for hosted domains (RFC 8461); enforce requires a certificate for hostname',
  }),
  dnsbl: List(MailDomain, 'domains')
    .prefault([])
    .meta({
      description: 'DNS block lists in which each client is looked up; a listed client is rejected',
      example: ['zen.spamhaus.org'],
    }),
  rspamd: Group({
    url: WebAddress.meta({ description: 'URL of the Rspamd worker that answers /checkv2', example: 'http://127.0.0.1:11334' }),
    password: Text('the password of the worker')
      .optional()
      .meta({ description: 'Password of the Rspamd worker, if it has one', secret: true }),
    timeout: Duration(100, 300_000).prefault('5 s').meta({ description: 'Timeout for one message', unit: time }),
  })
    .optional()
    .meta({ description: 'Checks each message with Rspamd' }),
})
