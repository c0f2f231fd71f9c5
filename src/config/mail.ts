import * as z from 'zod'
import { day, hour, second } from '../core/clock.ts'
import {
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

/** Receiving mail. */
export const smtp = Group({
  listen: z
    .union([z.string(), z.array(z.string()).min(1, { error: listeners })], { error: listeners })
    .transform((given) => (typeof given === 'string' ? [given] : given))
    .pipe(z.array(Listen))
    .prefault('127.0.0.1:2525')
    .meta({
      description: 'Where mail is received: one host:port or a list of them; the world delivers to port 25',
      restart: true,
    }),
  size: Size(65_536).prefault('25 MiB').meta({ description: 'The largest message taken', unit: bytes }),
  max_memory: Size(0).prefault('80 MiB').meta({
    description:
      'What all messages on their way in may hold of memory together, until each is on disk; above it one is put off (452). There is always room for three of the largest; the process itself needs about twice as much',
    unit: bytes,
  }),
  greeting_delay: Duration(0, 30_000).prefault('20 ms').meta({
    description: 'How long a client must wait in silence for the greeting; one that talks first is turned away',
    unit: time,
  }),
  max_recipients: Whole(1, 10_000).prefault(100).meta({ description: 'Recipients of one message', unit: 'recipients' }),
  max_connections: Whole(1, 100_000).prefault(500).meta({ description: 'Connections open at once', unit: 'connections' }),
  max_connections_per_address: Whole(1, 100_000).prefault(20).meta({
    description: 'Connections open at once from one address (IPv6: one /64; 4 times as many from a /56, 16 times from a /48)',
    unit: 'connections',
  }),
  max_errors: Whole(1, 10_000)
    .prefault(20)
    .meta({ description: 'Refused commands after which a connection is closed', unit: 'commands' }),
  max_commands: Whole(10, 100_000)
    .prefault(100)
    .meta({ description: 'Commands without a delivered message after which a connection is closed', unit: 'commands' }),
  idle_timeout: Duration(second, hour)
    .prefault('60 s')
    .meta({ description: 'Silence after which a connection is closed', unit: time }),
  session_timeout: Duration(second, day).prefault('10 min').meta({
    description:
      'The longest life of a connection without a delivered message; one being received goes on, if it comes at 500 octets a second',
    unit: time,
  }),
  max_received: Whole(1, 1000)
    .prefault(50)
    .meta({ description: 'Received fields of a message above which it is taken to be in a loop', unit: 'fields' }),
  tls: Group({ cert: certificateFile, key: keyFile })
    .optional()
    .meta({ description: 'The certificate shown after STARTTLS; without it one is made and kept in <data_dir>/tls' }),
})

/** What is done with mail. */
export const mail = Group({
  domain: MailDomain.prefault('pillarbox.test').meta({ description: 'The domain of new addresses', restart: true }),
  dmarc: Choice(['reject', 'quarantine', 'none']).prefault('reject').meta({
    description:
      'The harshest DMARC policy of a sender that is followed: quarantine marks what should be rejected, none only notes',
  }),
  trusted_sealers: List(MailDomain, 'domains')
    .prefault([])
    .meta({ description: 'Forwarders whose ARC seal overrides a DMARC failure (RFC 8617)', example: ['lists.example.com'] }),
  verdict_timeout: Duration(100, 300_000).prefault('15 s').meta({
    description: 'How long the checks of one message may take together; what is open then counts as temperror',
    unit: time,
  }),
  strict_temperror: Switch.prefault(false).meta({
    description: 'Put off a message (451) whose checks met a DNS failure, instead of keeping it with that noted',
  }),
  quota: Size(0).prefault('1 GiB').meta({
    description:
      'Mail kept for one identity, sent mail too, and ten times as much for the operator (postmaster, abuse); above it mail is put off (452) and none is sent; 0 means no limit',
    unit: bytes,
  }),
  postmaster: MailAddress.optional().meta({
    description: 'Where mail for postmaster and abuse is forwarded; it is kept here as well',
    example: 'admin@example.net',
  }),
  mta_sts: Choice(['none', 'testing', 'enforce']).prefault('testing').meta({
    description: 'What is published of TLS for our domains (MTA-STS, RFC 8461); enforce needs a certificate that names hostname',
  }),
  dnsbl: List(MailDomain, 'domains')
    .prefault([])
    .meta({ description: 'DNS block lists asked about each client; who is listed is refused', example: ['zen.spamhaus.org'] }),
  rspamd: Group({
    url: WebAddress.meta({ description: 'Where its worker answers /checkv2', example: 'http://127.0.0.1:11334' }),
    password: Text('the password of the worker')
      .optional()
      .meta({ description: 'What its worker asks for, if it does', secret: true }),
    timeout: Duration(100, 300_000).prefault('5 s').meta({ description: 'How long it may think about one message', unit: time }),
  })
    .optional()
    .meta({ description: 'Ask Rspamd about each message' }),
})
