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
  type Endpoint,
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
import { trimEnd } from './core/text.ts'
import { backup, retention } from './config/retention.ts'
import { acme } from './config/acme.ts'
import { realtime, tokens, webhooks } from './config/live.ts'
import { limits } from './config/limits.ts'
import { listenerFlaws } from './config/listeners.ts'
import { mail, smtp } from './config/mail.ts'
import { fetching, outbound, relayFlaws, reports, submission } from './config/sending.ts'
import { sms } from './config/sms.ts'

export { ConfigError } from './config/problems.ts'
export type { Endpoint } from './config/values.ts'

const Directory = Text('the path of a directory')

const http = Group({
  listen: Listen.prefault('127.0.0.1:8080').meta({
    description: 'Where the API is served in the clear: host:port, [address]:port or :port; port 0 takes any free one',
    restart: true,
  }),
  tls: Group({
    cert: certificateFile.optional().meta({ otherwise: 'what ACME obtained, else one that is made and kept in <data_dir>/tls' }),
    key: keyFile.optional(),
    listen: Listen.prefault('127.0.0.1:8443').meta({ description: 'Where the API is served over TLS', restart: true }),
  })
    .superRefine(both('cert', 'key', 'must be the path of a file'))
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
  account_rate_limit: Whole(0, 100_000_000).optional().meta({
    description: 'Calls that all keys and sessions of one account may make together; 0 means no limit',
    otherwise: '100 times rate_limit',
    example: 60_000,
    unit: 'calls a minute',
  }),
  public_rate_limit: Whole(0, 1_000_000).prefault(60).meta({
    description:
      'Calls without a key from one address (IPv6: one /64; 4 times as many from a /56, 16 times from a /48); 0 means no limit',
    unit: 'calls a minute',
  }),
  document_rate_limit: Whole(0, 1_000_000)
    .prefault(600)
    .meta({ description: 'Signed URLs and public documents read from one address; 0 means no limit', unit: 'calls a minute' }),
  sign_in_rate_limit: Whole(0, 1_000_000)
    .prefault(5)
    .meta({ description: 'Attempts to sign in from one address; 0 means no limit', unit: 'calls a minute' }),
  session_idle: Duration(minute, 365 * day)
    .prefault('7 d')
    .meta({ description: 'A session that is not used for so long ends', unit: time }),
  session_lifetime: Duration(minute, 365 * day)
    .prefault('30 d')
    .meta({ description: 'Every session ends after so long, and its person signs in again', unit: time }),
  session_same_site: Choice(['strict', 'lax', 'none']).prefault('strict').meta({
    description:
      'Whether browsers send the cookie of a session from pages of other sites: never, when a link is followed, or always (https only). What changes something must come from our own origin or http.cors_origins all the same',
  }),
  max_connections: Whole(1, 1_000_000)
    .prefault(1000)
    .meta({ description: 'Connections open at once; more are closed as they come', unit: 'connections' }),
  max_connections_per_address: Whole(1, 1_000_000).prefault(100).meta({
    description:
      'Connections open at once from one address (IPv6: one /64; 4 times as many from a /56, 16 times from a /48), so that none can take all; those in trusted_proxies are not counted',
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

const dns = Group({
  servers: List(NameServer, 'addresses')
    .prefault([])
    .meta({ description: "Name servers to ask; without any, the system's", example: ['127.0.0.1:53', '[::1]:53'] }),
  timeout: Duration(50, 60_000).prefault('2 s').meta({ description: 'How long to wait for one answer', unit: time }),
})

const transfer = Group({
  upload_limit: Size(1_048_576).prefault('1 GiB').meta({
    description: 'The largest file that is imported by one call; a ZIP may hold 8 times as much unpacked',
    unit: bytes,
  }),
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
  master_key_file: Text('the path of a file').optional().meta({
    description: 'A master key that is handed over, 32 bytes in base64; the box only reads it',
    otherwise: 'the systemd credential master.key if there is one, else master.key in keys_dir, made when missing',
    file: true,
    restart: true,
    example: '/run/secrets/pillarbox-master-key',
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
  limits: limits.prefault({}).meta({
    description: 'What each account may have and use; the accounts in state.json can have limits of their own',
  }),
  log: log.prefault({}).meta({ description: 'What the box says of itself, as JSON lines on standard output' }),
  http: http.prefault({}).meta({ description: 'The REST API' }),
  metrics: metrics
    .prefault({})
    .meta({ description: 'Figures for Prometheus; none are served unless a listener or a token is set' }),
  realtime: realtime.prefault({}).meta({ description: 'Live events over WebSocket' }),
  smtp: smtp.prefault({}).meta({ description: 'Receiving mail' }),
  mail: mail.prefault({}).meta({ description: 'What is done with mail' }),
  outbound: outbound.prefault({}).meta({ description: 'Sending mail' }),
  reports: reports
    .prefault({})
    .meta({ description: 'Reports to other domains, on their mail and on TLS with their servers (docs/bounces.md)' }),
  fetch: fetching.prefault({}).meta({ description: 'Fetching what URLs of callers name' }),
  submission: submission.prefault({}).meta({ description: 'Taking mail from programs that speak SMTP' }),
  sms: sms.prefault({}).meta({ description: 'Text messages' }),
  transfer: transfer.prefault({}).meta({ description: 'Moving identities out of the box and into it' }),
  tokens: tokens.prefault({}).meta({ description: 'Identity tokens, and the keys they are signed with' }),
  webhooks: webhooks.prefault({}).meta({ description: 'Telling other servers what happens' }),
  acme: acme.optional().meta({ description: 'Certificates from a CA that speaks ACME, obtained and renewed by the box itself' }),
  retention: retention.prefault({}).meta({ description: 'How long things are kept' }),
  dns: dns.prefault({}).meta({ description: 'Looking up names' }),
  doctor: doctor.prefault({}).meta({ description: 'Looking after the box (docs/doctor.md)' }),
  backup: backup.prefault({}).meta({ description: 'All of the box in one file, made by the box itself' }),
})

/** Every setting with its default, explanation and unit; sizes come out as bytes, times as milliseconds, listeners as endpoints. */
export const Config = Settings.transform((settings, context) => {
  const tls = settings.http.tls
  const hostname = settings.hostname ?? settings.mail.domain
  const keys_dir = settings.keys_dir ?? `${trimEnd(settings.data_dir, '/')}-keys`
  if (`${resolve(keys_dir)}/`.startsWith(`${resolve(settings.data_dir)}/`)) {
    context.issues.push({ code: 'custom', path: ['keys_dir'], message: 'must lie outside data_dir', input: keys_dir })
  }
  const { directory } = settings.backup
  if (directory !== undefined && `${resolve(directory)}/`.startsWith(`${resolve(settings.data_dir)}/`)) {
    context.issues.push({ code: 'custom', path: ['backup', 'directory'], message: 'must lie outside data_dir', input: directory })
  }
  if (settings.outbound.mode === 'relay' && !settings.outbound.relay) {
    context.issues.push({
      code: 'custom',
      path: ['outbound', 'relay'],
      message: 'is needed when outbound.mode is relay',
      input: undefined,
    })
  }
  const { provider } = settings.sms
  if ((provider === 'twilio' || provider === 'android' || provider === 'http') && !settings.sms[provider]) {
    context.issues.push({
      code: 'custom',
      path: ['sms', provider],
      message: `is needed when sms.provider is ${provider}`,
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
      message: 'can be none only where public_url is https: browsers keep no such cookie otherwise',
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
  // whoever tries the box finds text messages that work; whoever set it up chooses who carries them
  const config = await load(Config, sources, (draft) => draft.assign(['sms', 'provider'], 'loopback', ''))
  const directory = sources.env['CREDENTIALS_DIRECTORY']
  const handed = directory ? resolve(sources.cwd, directory, 'master.key') : ''
  return config.master_key_file === undefined && existsSync(handed) ? { ...config, master_key_file: handed } : config
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

/** Where the box's own socket is; undefined where the path is longer than sockets may have (`sun_path`, unix(7)). */
export function controlSocket({ data_dir }: Pick<Config, 'data_dir'>): string | undefined {
  const path = join(resolve(data_dir), 'control.sock')
  return Buffer.byteLength(path) < 108 ? path : undefined
}

function reachable(endpoint: Endpoint, hostname: string | undefined): string {
  const everywhere = endpoint.host === undefined || endpoint.host === '0.0.0.0' || endpoint.host === '::'
  const host = everywhere ? (hostname ?? 'localhost') : (endpoint.host ?? '')
  return formatEndpoint({ host, port: endpoint.port })
}
