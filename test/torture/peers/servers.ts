import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { ambient } from '../../support/ambient.ts'
import { succeed } from '../../support/program.ts'
import { stored } from '../../support/store.ts'
import { downloaded, spawnOver } from './overlay.ts'
import { postfixFiles } from './postfix-files.ts'

/** Where a server is to be, and what it is for. */
export interface Place {
  /** An empty directory that every user can enter. */
  directory: string
  host: string
  port: number
  /** It takes mail for every address of this domain. */
  domain: string
  /** The name of its certificate. */
  hostname: string
  certFile: string
  keyFile: string
  /** The box that it relays mail for this domain to. */
  box: { domain: string; port: number; certFile: string }
}

/** A mail server of somebody else, which keeps each message as a file of one of its folders. */
interface Server {
  name: string
  start(place: Place): Promise<ChildProcess>
  /** Where it keeps mail, below its directory. */
  kept: string
  /** It keeps lines with CRLF. */
  crlf?: true
  /** It relays no mail by a queue. */
  relaysNone?: true
  /** It offers no TLS: that of OpenSMTPD 6.8 does not find its key with OpenSSL 3. */
  clear?: true
}

export const servers: Server[] = [
  {
    name: 'Postfix',
    kept: 'mail/new',
    start: async (place) => {
      await postfixFiles(place)
      return spawn('/usr/lib/postfix/sbin/master', ['-c', join(place.directory, 'etc'), '-d'], {
        stdio: 'ignore',
        detached: true,
      })
    },
  },
  {
    name: 'Exim',
    kept: 'mail/new',
    start: async (place) => {
      // it reads and writes as its own user
      chmodSync(place.keyFile, 0o644)
      mkdirSync(join(place.directory, 'spool'))
      chmodSync(join(place.directory, 'spool'), 0o777)
      const layer = { packages: eximPackages, users: ['Debian-exim'], files: { 'etc/exim4/exim4.conf': exim(place) } }
      return spawnOver(layer, place.directory, ['/usr/sbin/exim4', '-bdf', '-q1h'])
    },
  },
  {
    name: 'OpenSMTPD',
    kept: 'mail/new',
    clear: true,
    start: async (place) => {
      const layer = {
        packages: opensmtpdPackages,
        users: ['opensmtpd', 'opensmtpq'],
        files: { 'etc/smtpd.conf': opensmtpd(place) },
      }
      return spawnOver(layer, place.directory, ['/usr/sbin/smtpd', '-d'])
    },
  },
  {
    name: 'Haraka',
    kept: 'mail',
    crlf: true,
    start: async (place) => {
      const program = await haraka()
      await harakaFiles(program, place)
      return spawn(process.execPath, [join(program, 'Haraka/bin/haraka'), '-c', place.directory], {
        stdio: 'ignore',
        env: ambient,
      })
    },
  },
  {
    name: 'aiosmtpd',
    kept: 'mail',
    crlf: true,
    relaysNone: true,
    start: async ({ directory, host, port, hostname, certFile, keyFile }) =>
      spawn('/usr/bin/python3', ['-c', aiosmtpd, host, String(port), hostname, certFile, keyFile, join(directory, 'mail')], {
        stdio: 'ignore',
      }),
  },
]

/** Why they cannot be started here; undefined where they can. */
export function missingServer(): string | undefined {
  if (process.getuid?.() !== 0) return 'Postfix, Exim and OpenSMTPD start only as root'
  for (const [program, install] of [
    ['/usr/lib/postfix/sbin/master', 'postfix'],
    ['/usr/bin/unshare', 'util-linux'],
    ['/usr/bin/apt-get', 'apt'],
    ['/usr/lib/python3/dist-packages/aiosmtpd', 'python3-aiosmtpd'],
    ['/usr/lib/python3/dist-packages/dkim', 'python3-dkim python3-nacl'],
  ] as const)
    if (!existsSync(program)) return `${program} is not there (apt-get install ${install})`
  return undefined
}

const children = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of children) kill(child)
})

/** Ends a server with all that it has started. */
function kill(child: ChildProcess): void {
  try {
    // those of Postfix are of its process group
    process.kill(-child.pid!, 'SIGKILL')
  } catch {
    child.kill('SIGKILL')
  }
}

/** A server that takes mail. */
export class RunningServer {
  readonly name: string
  readonly place: Place
  readonly offersTls: boolean
  readonly keepsCrlf: boolean
  readonly relays: boolean
  readonly #folder: string
  readonly #child: ChildProcess

  private constructor(server: Server, place: Place, child: ChildProcess) {
    this.name = server.name
    this.place = place
    this.offersTls = server.clear !== true
    this.keepsCrlf = server.crlf === true
    this.relays = server.relaysNone !== true
    this.#folder = join(place.directory, server.kept)
    this.#child = child
  }

  static async start(server: Server, place: Place): Promise<RunningServer> {
    mkdirSync(join(place.directory, 'mail'))
    for (const path of ['', 'mail']) chmodSync(join(place.directory, path), path === '' ? 0o755 : 0o777)
    const child = await server.start(place)
    children.add(child)
    let said = ''
    for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', (text: string) => (said += text))
    const running = new RunningServer(server, place, child)
    for (let tries = 0; !(await greets(place)); tries += 1) {
      if (tries === 300 || child.exitCode !== null) {
        await running.stop()
        throw new Error(`${server.name} does not start: ${said}`)
      }
      await sleep(100)
    }
    return running
  }

  /** The file that has this, once there is one. */
  async kept(mark: string): Promise<Buffer | undefined> {
    for (const end = Date.now() + 30_000; Date.now() < end; await sleep(50)) {
      const names = existsSync(this.#folder) ? readdirSync(this.#folder) : []
      for (const name of names.filter((one) => !one.startsWith('.'))) {
        const content = readFileSync(join(this.#folder, name))
        if (!content.includes(mark)) continue
        rmSync(join(this.#folder, name))
        return content
      }
    }
    return undefined
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const ended = once(this.#child, 'exit')
    kill(this.#child)
    await ended
    children.delete(this.#child)
  }
}

/** True if a mail server answers there. */
export async function greets({ host, port }: Pick<Place, 'host' | 'port'>): Promise<boolean> {
  const socket = connect({ host, port })
  try {
    const [greeting] = (await Promise.race([once(socket, 'data'), once(socket, 'close')])) as [Buffer | boolean]
    return greeting.toString().startsWith('220')
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

export const eximPackages = ['exim4-daemon-light', 'exim4-base', 'exim4-config', 'libgnutls-dane0', 'libidn12', 'libunbound8']

function exim({ directory, host, port, domain, hostname, certFile, keyFile, box }: Place): string {
  return `primary_hostname = ${hostname}
spool_directory = ${directory}/spool
disable_ipv6 = true
log_file_path = ${directory}/spool/%slog
keep_environment =
smtp_accept_queue_per_connection = 0
domainlist local_domains = ${domain}
local_interfaces = ${host}
daemon_smtp_ports = ${port}
tls_certificate = ${certFile}
tls_privatekey = ${keyFile}
tls_advertise_hosts = *
host_lookup =
acl_smtp_rcpt = all
acl_smtp_data = all
begin acl
all:
  accept
begin routers
keep:
  driver = accept
  domains = +local_domains
  transport = keep
relay:
  driver = manualroute
  domains = ${box.domain}
  route_list = * localhost byname
  self = send
  transport = relay
begin transports
relay:
  driver = smtp
  port = ${box.port}
  hosts_require_tls = *
  tls_verify_certificates = ${box.certFile}
  tls_verify_hosts = *
  tls_try_verify_hosts =
keep:
  driver = appendfile
  directory = ${directory}/mail
  maildir_format
  user = Debian-exim
`
}

export const opensmtpdPackages = ['opensmtpd', 'libevent-2.1-7']

function opensmtpd({ directory, host, port, domain, hostname, box }: Place): string {
  return `table users { "@" = mail }
listen on ${host} port ${port} hostname ${hostname}
action keep maildir "${directory}/mail" virtual <users>
action "to the box" relay host smtp+notls://127.0.0.1:${box.port}
match from any for domain "${domain}" action keep
match from any for domain "${box.domain}" action "to the box"
`
}

/** Fetches the packages of those that are not installed. */
export async function fetchServers(): Promise<void> {
  for (const packages of [eximPackages, opensmtpdPackages]) await downloaded(packages)
  await haraka()
}

/** Where Haraka is installed, which stays from run to run. */
async function haraka(): Promise<string> {
  const place = stored('haraka', '3.3.4')
  const packages = join(place, 'node_modules')
  if (existsSync(packages)) return packages
  const part = `${place}.part`
  rmSync(part, { recursive: true, force: true })
  mkdirSync(part)
  const certificates = process.env['NODE_EXTRA_CA_CERTS']
  const env = { ...ambient, ...(certificates === undefined ? {} : { NODE_EXTRA_CA_CERTS: certificates }) }
  const words = [
    'install',
    '--prefix',
    part,
    '--omit=dev',
    '--omit=optional',
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    'Haraka@3.3.4',
  ]
  await promisify(execFile)('npm', words, { cwd: part, env })
  renameSync(part, place)
  return packages
}

async function harakaFiles(program: string, { directory, host, port, hostname, certFile, keyFile, box }: Place): Promise<void> {
  const files = {
    'config/smtp.ini': `listen=${host}:${port}\nnodes=0\n`,
    'config/me': hostname,
    'config/plugins': 'tls\nkeep\n',
    'config/loglevel': 'WARN',
    'config/outbound.ini': 'enable_tls=true\nlocal_mx_ok=true\n',
    // it would fold longer lines
    'config/connection.ini': readFileSync(join(program, 'Haraka/config/connection.ini'), 'utf8').replace(
      'data_line_length=992',
      'data_line_length=9999',
    ),
    'plugins/keep.js': `const fs = require('node:fs')
exports.hook_rcpt = (next, connection, [recipient]) => {
  connection.relaying = recipient.host === ${JSON.stringify(box.domain)}
  next(OK)
}
exports.hook_get_mx = (next) => next(OK, { priority: 0, exchange: '127.0.0.1', port: ${box.port} })
exports.hook_queue = (next, { transaction }) => {
  const part = ${JSON.stringify(`${directory}/mail/.`)} + transaction.uuid
  const file = fs.createWriteStream(part)
  file.on('close', () => {
    fs.renameSync(part, ${JSON.stringify(`${directory}/mail/`)} + transaction.uuid)
    next(OK)
  })
  transaction.message_stream.pipe(file)
}
`,
  }
  for (const name of ['config', 'plugins']) mkdirSync(join(directory, name))
  for (const [name, content] of Object.entries(files)) writeFileSync(join(directory, name), content)
  copyFileSync(keyFile, join(directory, 'config/tls_key.pem'))
  copyFileSync(certFile, join(directory, 'config/tls_cert.pem'))
  // it would take a minute to find some of its own
  const parameters = await succeed('openssl', ['genpkey', '-genparam', '-algorithm', 'DH', '-pkeyopt', 'group:ffdhe2048'])
  writeFileSync(join(directory, 'config/dhparams.pem'), parameters)
}

const aiosmtpd = `
import os, ssl, sys, threading, uuid
from aiosmtpd.controller import Controller
host, port, hostname, cert, key, folder = sys.argv[1:]
class Keep:
    async def handle_DATA(self, server, session, envelope):
        name = uuid.uuid4().hex
        with open(os.path.join(folder, '.' + name), 'wb') as file:
            file.write(envelope.original_content)
        os.rename(os.path.join(folder, '.' + name), os.path.join(folder, name))
        return '250 OK'
context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
context.load_cert_chain(cert, key)
Controller(Keep(), hostname=host, port=int(port), server_hostname=hostname, tls_context=context, require_starttls=True, data_size_limit=30000000).start()
threading.Event().wait()`
