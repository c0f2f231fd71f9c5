import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import * as z from 'zod'
import { formatEndpoint } from './core/domain-names.ts'
import { day, minute } from './core/clock.ts'
import { load, type Sources } from './config/load.ts'
import { read, sections, settingsOf } from './config/settings.ts'
import {
  AddressBlock,
  both,
  bytes,
  certificateFile,
  Choice,
  Duration,
  Group,
  HostName,
  keyFile,
  List,
  Listen,
  NameServer,
  Origin,
  Secret,
  Size,
  Text,
  time,
  Whole,
} from './config/values.ts'
import { doctor, log } from './config/operation.ts'
import { blobs, database } from './config/database/settings.ts'
import { trimEnd } from './core/text.ts'
import { backup, retention } from './config/retention.ts'
import { acme } from './config/acme.ts'
import { realtime, webhooks } from './config/events.ts'
import { limits } from './config/limits.ts'
import { listenerFlaws } from './config/listeners.ts'
import { mail, proxyProtocol, smtp } from './config/mail.ts'
import { policy } from './config/policy.ts'
import { fetching, outbound, relayFlaws, reports, submission } from './config/sending.ts'
import { sms } from './config/sms.ts'
import type { Endpoint } from './net/listen.ts'

export { ConfigError, type ConfigProblem, formatSource } from './config/problems.ts'

const Directory = Text('the path of a directory')

/** The keys that sign identity tokens. */
const tokens = Group({
  rotate_every: Duration(day, 3650 * day)
    .prefault('90 d')
    .meta({ description: 'Time after which the key that signs identity tokens and credentials is replaced', unit: time }),
})

const http = Group({
  listen: Listen.prefault('127.0.0.1:8080').meta({
    description: 'Listener of the API without TLS: host:port, [address]:port or :port; port 0 picks any free port',
    restart: true,
  }),
  tls: Group({
    cert: certificateFile.optional().meta({ otherwise: 'the one obtained by ACME, else a self-signed one in <data_dir>/tls' }),
    key: keyFile.optional(),
    listen: Listen.prefault('127.0.0.1:8443').meta({ description: 'Listener of the API with TLS', restart: true }),
  })
    .superRefine(both('cert', 'key', 'must be the path of a file'))
    .optional()
    .meta({ description: 'Serves the API over TLS too, on a separate port' }),
  trusted_proxies: List(AddressBlock, 'address blocks')
    .prefault([])
    .meta({
      description: 'Reverse proxies whose X-Forwarded-For is trusted, as address blocks',
      example: ['10.0.0.0/8', 'fd00::/8'],
    }),
  proxy_protocol: proxyProtocol('the listeners of the API'),
  cors_origins: List(Origin, 'origins')
    .prefault([])
    .meta({
      description: 'Origins that may call the API from a browser with credentials (CORS); exact values',
      example: ['https://app.example.com'],
    }),
  rate_limit: Whole(0, 1_000_000)
    .prefault(600)
    .meta({ description: 'Rate limit of a key that has none of its own; 0 means no limit', unit: 'calls a minute' }),
  account_rate_limit: Whole(0, 100_000_000).optional().meta({
    description: 'Rate limit of all keys and sessions of one account together; 0 means no limit',
    otherwise: '100 times rate_limit',
    example: 60_000,
    unit: 'calls a minute',
  }),
  public_rate_limit: Whole(0, 1_000_000).prefault(60).meta({
    description:
      'Rate limit of calls without a key from one address (IPv6: one /64; 4 times as many from a /56, 16 times from a /48); 0 means no limit',
    unit: 'calls a minute',
  }),
  document_rate_limit: Whole(0, 1_000_000).prefault(600).meta({
    description: 'Rate limit of reads of signed URLs and public documents from one address; 0 means no limit',
    unit: 'calls a minute',
  }),
  sign_in_rate_limit: Whole(0, 1_000_000)
    .prefault(5)
    .meta({ description: 'Rate limit of sign-in attempts from one address; 0 means no limit', unit: 'calls a minute' }),
  session_idle: Duration(minute, 365 * day)
    .prefault('7 d')
    .meta({ description: 'Idle time after which a session ends', unit: time }),
  session_lifetime: Duration(minute, 365 * day)
    .prefault('30 d')
    .meta({ description: 'Maximum duration of a session, after which a person must sign in again', unit: time }),
  session_same_site: Choice(['strict', 'lax', 'none']).prefault('strict').meta({
    description:
      'SameSite attribute of the session cookie. In every case a call that changes something must come from the same origin or from http.cors_origins; none requires https',
  }),
  max_connections: Whole(1, 1_000_000).prefault(1000).meta({
    description:
      'Maximum number of open connections; a further one takes the place of the oldest of the network with most of them and without a call with a key within three minutes, if that has more than its own, else it is closed immediately',
    unit: 'connections',
  }),
  max_connections_per_address: Whole(1, 1_000_000).prefault(100).meta({
    description:
      'Maximum number of open connections from one address (IPv6: one /64; 4 times as many from a /56, 16 times from a /48); those of trusted_proxies are not counted',
    unit: 'connections',
  }),
})

const metrics = Group({
  listen: Listen.optional().meta({
    description: 'Separate listener for GET /metrics, open to everyone who can reach it',
    example: '127.0.0.1:9464',
    restart: true,
  }),
  token: Secret.optional().meta({
    description: 'Bearer token for GET /metrics on the listeners of the API',
    secret: true,
  }),
})

const dns = Group({
  servers: List(NameServer, 'addresses')
    .prefault([])
    .meta({ description: 'Name servers to use instead of those of the system', example: ['127.0.0.1:53', '[::1]:53'] }),
  timeout: Duration(50, 60_000).prefault('2 s').meta({ description: 'Timeout for one answer', unit: time }),
})

const transfer = Group({
  upload_limit: Size(1_048_576).prefault('1 GiB').meta({
    description: 'Maximum size of a file imported by one call; the contents of a ZIP may be 8 times as large',
    unit: bytes,
  }),
})

const account = Group({
  name: Text('a name').prefault('default').meta({ description: 'Name of the first account', restart: true }),
})

const Settings = Group({
  data_dir: Directory.prefault('./data').meta({
    description: 'Directory of all data except keys. A relative path is relative to the working directory',
    directory: true,
    restart: true,
  }),
  keys_dir: Directory.optional().meta({
    description: 'Directory of the keys that decrypt the secrets in data_dir; it must be outside data_dir',
    otherwise: '<data_dir>-keys',
    directory: true,
    restart: true,
    example: './data-keys',
  }),
  master_key_file: Text('the path of a file').optional().meta({
    description: 'File with the master key, 32 bytes in base64; the box only reads it',
    otherwise: 'the systemd credential master.key if there is one, else master.key in keys_dir, created when missing',
    file: true,
    restart: true,
    example: '/run/secrets/pillarbox-master-key',
  }),
  hostname: HostName.optional().meta({
    description: 'Host name of this mail server, in HELO and in its certificate: the target of MX records',
    otherwise: 'mail.domain',
    restart: true,
    example: 'mx.example.com',
  }),
  public_url: Origin.optional().meta({
    description: 'URL at which clients reach the API, used in links',
    otherwise: 'http.listen, or http.tls.listen when there is TLS',
    restart: true,
    example: 'https://box.example.com',
  }),
  min_free: Size(0).prefault('256 MiB').meta({
    description:
      'Minimum free space on the disk of data_dir; below it mail is deferred and writes are rejected with storage_full',
    unit: 'bytes',
    restart: true,
  }),
  database: database.prefault({}).meta({ description: 'The database' }),
  blobs: blobs.prefault({}).meta({ description: 'Where large data is stored' }),
  bootstrap_key: Secret.optional().meta({
    description: 'API key with every scope, for a first setup: 20 to 128 printable ASCII characters without spaces',
    secret: true,
    restart: true,
  }),
  account: account.prefault({}).meta({ description: 'The first account' }),
  limits: limits.prefault({}).meta({
    description: 'Limits of each account; an account in state.json can override them',
  }),
  log: log.prefault({}).meta({ description: 'Log, as JSON lines on standard output' }),
  http: http.prefault({}).meta({ description: 'The REST API' }),
  metrics: metrics.prefault({}).meta({ description: 'Metrics for Prometheus; served only if a listener or a token is set' }),
  realtime: realtime.prefault({}).meta({ description: 'Live events over WebSocket' }),
  smtp: smtp.prefault({}).meta({ description: 'Receiving mail' }),
  mail: mail.prefault({}).meta({ description: 'Processing of received mail' }),
  outbound: outbound.prefault({}).meta({ description: 'Sending mail' }),
  policy: policy.prefault({}).meta({ description: 'What keys may send, and what a person looks at before' }),
  reports: reports.prefault({}).meta({ description: 'DMARC and TLS reports to other domains (docs/email.md)' }),
  fetch: fetching.prefault({}).meta({ description: 'Fetching URLs given by callers' }),
  submission: submission.prefault({}).meta({ description: 'Message submission by SMTP' }),
  sms: sms.prefault({}).meta({ description: 'Text messages' }),
  transfer: transfer.prefault({}).meta({ description: 'Export and import of identities' }),
  tokens: tokens.prefault({}).meta({ description: 'Identity tokens and their signing keys' }),
  webhooks: webhooks.prefault({}).meta({ description: 'Delivery of events by HTTP' }),
  acme: acme.optional().meta({ description: 'Certificates obtained and renewed by ACME' }),
  retention: retention.prefault({}).meta({ description: 'Retention' }),
  dns: dns.prefault({}).meta({ description: 'DNS lookups' }),
  doctor: doctor.prefault({}).meta({ description: 'Self-checks (docs/troubleshooting.md)' }),
  backup: backup.prefault({}).meta({ description: 'Automatic backups of the whole box' }),
})

/** Every setting with its default, explanation and unit; sizes come out as bytes, times as milliseconds, listeners as endpoints. */
export const Config = Settings.transform((settings, context) => {
  const tls = settings.http.tls
  const hostname = settings.hostname ?? settings.mail.domain
  const keys_dir = settings.keys_dir ?? `${trimEnd(settings.data_dir, '/')}-keys`
  if (`${resolve(keys_dir)}/`.startsWith(`${resolve(settings.data_dir)}/`)) {
    context.issues.push({ code: 'custom', path: ['keys_dir'], message: 'must be outside data_dir', input: keys_dir })
  }
  const { directory } = settings.backup
  if (directory !== undefined && `${resolve(directory)}/`.startsWith(`${resolve(settings.data_dir)}/`)) {
    context.issues.push({ code: 'custom', path: ['backup', 'directory'], message: 'must be outside data_dir', input: directory })
  }
  if (settings.database.several && !settings.database.url) {
    context.issues.push({
      code: 'custom',
      path: ['database', 'url'],
      message: 'is required when database.several is true',
      input: undefined,
    })
  }
  if (settings.outbound.mode === 'relay' && !settings.outbound.relay) {
    context.issues.push({
      code: 'custom',
      path: ['outbound', 'relay'],
      message: 'is required when outbound.mode is relay',
      input: undefined,
    })
  }
  const { provider } = settings.sms
  if ((provider === 'twilio' || provider === 'android' || provider === 'http') && !settings.sms[provider]) {
    context.issues.push({
      code: 'custom',
      path: ['sms', provider],
      message: `is required when sms.provider is ${provider}`,
      input: undefined,
    })
  }
  for (const { path, why } of relayFlaws(settings.outbound)) {
    context.issues.push({ code: 'custom', path, message: why, input: undefined })
  }
  for (const { path, why } of listenerFlaws(settings)) {
    context.issues.push({ code: 'custom', path, message: why, input: undefined })
  }
  const public_url =
    settings.public_url ??
    new URL(`${tls ? 'https' : 'http'}://${reachable(tls?.listen ?? settings.http.listen, settings.hostname)}`).origin
  if (settings.http.session_same_site === 'none' && !public_url.startsWith('https:')) {
    context.issues.push({
      code: 'custom',
      path: ['http', 'session_same_site'],
      message: 'can be none only if public_url is https: browsers reject such a cookie otherwise',
      input: 'none',
    })
  }
  return {
    ...settings,
    keys_dir,
    hostname,
    public_url,
  }
})
export type Config = z.output<typeof Config>

/** Merges defaults, the file, systemd credentials and the environment, later wins. Throws ConfigError that lists every problem. */
export async function loadConfig(sources: Sources): Promise<Config> {
  // without a configuration file text messages work within the box; with one, the operator chooses the provider
  const config = await load(Config, sources, (draft) => draft.set(['sms', 'provider'], 'loopback'))
  const directory = sources.env['CREDENTIALS_DIRECTORY']
  const handed = directory ? resolve(sources.cwd, directory, 'master.key') : ''
  return config.master_key_file === undefined && existsSync(handed) ? { ...config, master_key_file: handed } : config
}

/** The settings that differ, by whether they require a restart. */
export function changed(before: Config, after: Config): { reloadable: string[]; restart: string[] } {
  const different = settingsOf(sections(Config)).filter(({ path }) => !isDeepStrictEqual(read(before, path), read(after, path)))
  return {
    reloadable: different.filter(({ restart }) => !restart).map(({ name }) => name),
    restart: different.filter(({ restart }) => restart).map(({ name }) => name),
  }
}

/** Settings of a machine, which may differ between boxes on one database; so may the paths of files, and listeners. */
const ofMachine =
  /^(?:database\.url|min_free|bootstrap_key|log\..*|dns\..*|doctor\..*|backup\..*|acme\.webroot|http\.trusted_proxies|smtp\.max_memory|.*\.(?:listen|listen_tls|max_connections|max_sockets))$/

/** The settings that have to be the same for all boxes on one database, with their values. */
export function sharedSettings(config: Config): { name: string; value: unknown }[] {
  return settingsOf(sections(Config))
    .filter(({ name, names }) => names === undefined && !ofMachine.test(name))
    .map(({ name, path }) => ({ name, value: read(config, path) }))
}

/** The path of the box's own socket; undefined where it is longer than sockets may have (`sun_path`, unix(7)). */
export function controlSocket({ data_dir }: Pick<Config, 'data_dir'>): string | undefined {
  const path = join(resolve(data_dir), 'control.sock')
  return Buffer.byteLength(path) < 108 ? path : undefined
}

function reachable(endpoint: Endpoint, hostname: string | undefined): string {
  const everywhere = endpoint.host === undefined || endpoint.host === '0.0.0.0' || endpoint.host === '::'
  const host = everywhere ? (hostname ?? 'localhost') : (endpoint.host ?? '')
  return formatEndpoint({ host, port: endpoint.port })
}
