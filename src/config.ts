import { resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import * as z from 'zod'
import { load } from './config/load.ts'
import type { Sources } from './config/load.ts'
import { read, sections, settingsOf } from './config/settings.ts'
import {
  AddressBlock,
  Choice,
  Duration,
  Group,
  HostName,
  List,
  Listen,
  MailDomain,
  NameServer,
  Origin,
  Secret,
  Size,
  Switch,
  Text,
  WebAddress,
  Whole,
} from './config/values.ts'
import { realtime, webhooks } from './config/live.ts'
import type { Endpoint } from './config/values.ts'

export { ConfigError } from './config/problems.ts'
export type { Endpoint } from './config/values.ts'

const File = Text('the path of a file')
const Directory = Text('the path of a directory')
const certificateFile = File.meta({
  description: 'PEM file with the certificate, then those that lead to its root',
  file: true,
  example: 'tls/cert.pem',
})
const keyFile = File.meta({ description: 'PEM file with the private key of the certificate', file: true, example: 'tls/key.pem' })

const bytes = 'bytes, or with a unit such as kB, MiB or GiB'
const time = 'milliseconds, or with a unit: ms, s, min, h or d'

const log = Group({
  level: Choice(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
    .prefault('info')
    .meta({ description: 'The least important line that is still written' }),
})

const http = Group({
  listen: Listen.prefault('127.0.0.1:8080').meta({
    description: 'Where the API is served in the clear: host:port, [address]:port or :port; port 0 takes any free one',
    restart: true,
  }),
  tls: Group({
    cert: certificateFile,
    key: keyFile,
    listen: Listen.prefault('127.0.0.1:8443').meta({ description: 'Where the API is served over TLS', restart: true }),
  })
    .optional()
    .meta({ description: 'Serve the API over TLS too, on a port of its own' }),
  trusted_proxies: List(AddressBlock, 'address blocks')
    .prefault([])
    .meta({ description: 'Proxies whose X-Forwarded-For is believed, as address blocks', example: ['10.0.0.0/8', 'fd00::/8'] }),
  cors_origins: List(Origin, 'origins')
    .prefault([])
    .meta({
      description: 'Sites whose pages may call the API from a browser, with credentials; an exact list',
      example: ['https://app.example.com'],
    }),
  rate_limit: Whole(0, 1_000_000)
    .prefault(600)
    .meta({ description: 'Calls a key may make unless the key says otherwise; 0 means no limit', unit: 'calls a minute' }),
  public_rate_limit: Whole(0, 1_000_000)
    .prefault(60)
    .meta({ description: 'Calls without a key from one address; 0 means no limit', unit: 'calls a minute' }),
  document_rate_limit: Whole(0, 1_000_000)
    .prefault(600)
    .meta({ description: 'Signed URLs and public documents read from one address; 0 means no limit', unit: 'calls a minute' }),
  max_connections: Whole(1, 1_000_000)
    .prefault(1000)
    .meta({ description: 'Connections open at once; more are closed as they come', unit: 'connections' }),
  max_connections_per_address: Whole(1, 1_000_000).prefault(100).meta({
    description:
      'Connections open at once from one address (IPv6: one /64), so that none can take all; those in trusted_proxies are not counted',
    unit: 'connections',
  }),
})

const metrics = Group({
  listen: Listen.optional().meta({
    description: 'Serve GET /metrics on a listener of its own, open to whoever reaches it',
    example: '127.0.0.1:9464',
    restart: true,
  }),
  token: Secret.optional().meta({
    description: 'Serve GET /metrics beside the API to callers with this bearer token',
    secret: true,
  }),
})

const listeners = 'must be host:port such as 127.0.0.1:2525, or a list of them'

const smtp = Group({
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
  max_memory: Size(0).prefault('128 MiB').meta({
    description:
      'What all messages on their way in may hold of memory together, until each is on disk; above it one is put off (452). There is always room for four of the largest; the process itself needs about twice as much',
    unit: bytes,
  }),
  greeting_delay: Duration(0, 30_000).prefault('20 ms').meta({
    description: 'How long a client must wait in silence for the greeting; one that talks first is turned away',
    unit: time,
  }),
  max_recipients: Whole(1, 10_000).prefault(100).meta({ description: 'Recipients of one message', unit: 'recipients' }),
  max_connections: Whole(1, 100_000).prefault(500).meta({ description: 'Connections open at once', unit: 'connections' }),
  max_connections_per_address: Whole(1, 100_000)
    .prefault(20)
    .meta({ description: 'Connections open at once from one address (IPv6: one /64)', unit: 'connections' }),
  max_errors: Whole(1, 10_000)
    .prefault(20)
    .meta({ description: 'Refused commands after which a connection is closed', unit: 'commands' }),
  max_commands: Whole(10, 100_000)
    .prefault(100)
    .meta({ description: 'Commands without a delivered message after which a connection is closed', unit: 'commands' }),
  idle_timeout: Duration(1000, 3_600_000)
    .prefault('60 s')
    .meta({ description: 'Silence after which a connection is closed', unit: time }),
  session_timeout: Duration(1000, 86_400_000).prefault('10 min').meta({
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

const mail = Group({
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
      'Mail kept for one identity, and ten times as much for the operator (postmaster, abuse); above it mail is put off (452); 0 means no limit',
    unit: bytes,
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

const dns = Group({
  servers: List(NameServer, 'addresses')
    .prefault([])
    .meta({ description: "Name servers to ask; without any, the system's", example: ['127.0.0.1:53', '[::1]:53'] }),
  timeout: Duration(50, 60_000).prefault('2 s').meta({ description: 'How long to wait for one answer', unit: time }),
})

const account = Group({
  name: Text('a name').prefault('default').meta({ description: "The name of the box's first account", restart: true }),
})

const Settings = Group({
  data_dir: Directory.prefault('./data').meta({
    description: 'Everything the box keeps, except keys. Relative paths start at the working directory',
    directory: true,
    restart: true,
  }),
  keys_dir: Directory.optional().meta({
    description: 'The keys that open what is sealed in data_dir; beside it, never inside',
    otherwise: '<data_dir>-keys',
    directory: true,
    restart: true,
    example: './data-keys',
  }),
  hostname: HostName.optional().meta({
    description: 'The name the box bears towards other mail servers, and in its certificate: what MX records point to',
    otherwise: 'mail.domain',
    restart: true,
    example: 'mx.example.com',
  }),
  public_url: Origin.optional().meta({
    description: 'Where clients reach the API, as links are written',
    otherwise: 'http.listen, or http.tls.listen when there is TLS',
    restart: true,
    example: 'https://box.example.com',
  }),
  min_free: Size(0).prefault('256 MiB').meta({
    description:
      'Free space on the disk of data_dir below which the box takes nothing new: mail is put off, writes answer storage_full',
    unit: 'bytes',
    restart: true,
  }),
  bootstrap_key: Secret.optional().meta({
    description: 'An API key with every scope, for the first steps: 20 to 128 printable ASCII characters without spaces',
    secret: true,
    restart: true,
  }),
  account: account.prefault({}).meta({ description: 'The account the box starts with' }),
  log: log.prefault({}).meta({ description: 'What the box says of itself, as JSON lines on standard output' }),
  http: http.prefault({}).meta({ description: 'The REST API' }),
  metrics: metrics
    .prefault({})
    .meta({ description: 'Figures for Prometheus; none are served unless a listener or a token is set' }),
  realtime: realtime.prefault({}).meta({ description: 'Live events over WebSocket' }),
  smtp: smtp.prefault({}).meta({ description: 'Receiving mail' }),
  mail: mail.prefault({}).meta({ description: 'What is done with mail' }),
  webhooks: webhooks.prefault({}).meta({ description: 'Telling other servers what happens' }),
  dns: dns.prefault({}).meta({ description: 'Looking up names' }),
})

/** Every setting with its default, explanation and unit; sizes come out as bytes, times as milliseconds, listeners as endpoints. */
export const Config = Settings.transform((settings, context) => {
  const tls = settings.http.tls
  const hostname = settings.hostname ?? settings.mail.domain
  const keys_dir = settings.keys_dir ?? `${settings.data_dir.replace(/\/+$/, '')}-keys`
  if (`${resolve(keys_dir)}/`.startsWith(`${resolve(settings.data_dir)}/`)) {
    context.issues.push({ code: 'custom', path: ['keys_dir'], message: 'must lie outside data_dir', input: keys_dir })
  }
  return {
    ...settings,
    keys_dir,
    hostname,
    public_url:
      settings.public_url ??
      new URL(`${tls ? 'https' : 'http'}://${reachable(tls?.listen ?? settings.http.listen, settings.hostname)}`).origin,
  }
})
export type Config = z.output<typeof Config>

/** Merges defaults, the file, systemd credentials and the environment, later wins. Throws ConfigError that lists every problem. */
export function loadConfig(sources: Sources): Promise<Config> {
  return load(Config, sources)
}

/** The settings that only a restart puts into effect. */
export const restartOnly: string[] = settingsOf(sections(Config))
  .filter(({ restart }) => restart)
  .map(({ name }) => name)

/** Which settings differ, told apart by what they need. */
export function changed(before: Config, after: Config): { reloadable: string[]; restart: string[] } {
  const different = settingsOf(sections(Config)).filter(({ path }) => !isDeepStrictEqual(read(before, path), read(after, path)))
  return {
    reloadable: different.filter(({ restart }) => !restart).map(({ name }) => name),
    restart: different.filter(({ restart }) => restart).map(({ name }) => name),
  }
}

function reachable(endpoint: Endpoint, hostname: string | undefined): string {
  const everywhere = endpoint.host === undefined || endpoint.host === '0.0.0.0' || endpoint.host === '::'
  const host = everywhere ? (hostname ?? 'localhost') : (endpoint.host ?? '')
  return `${host.includes(':') ? `[${host}]` : host}:${endpoint.port}`
}
