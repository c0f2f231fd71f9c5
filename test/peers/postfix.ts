import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished, vi } from 'vitest'
import { succeed } from '../support/program.ts'
import { Dialogue } from '../support/smtp.ts'

/** A message for Postfix to pass on; `parameters` go with MAIL FROM. */
export interface Passed {
  from?: string
  to: string[]
  raw: string | Buffer
  parameters?: string
}

/** Where it takes mail from the network, too: for these addresses of one domain, which it keeps. */
export interface Receiving {
  port: number
  domain: string
  addresses: string[]
  tls: { cert: string; key: string }
}

/** How long Postfix may take for one step on a busy machine, in milliseconds. */
const timeout = { timeout: 100_000, interval: 50 }

/**
 * An instance of Postfix that relays all it takes to one box, under TLS or not at all; to `clear@pillarbox.test` in the clear, and to
 * `blunt@pillarbox.test` without heeding the size the box announces; mail to `full@away.test` bounces.
 */
export class Postfix {
  /** A UNIX socket where it takes mail by SMTP and sends it on at once. */
  readonly entrance: string
  readonly #directory: string
  readonly #configuration: string

  private constructor(directory: string) {
    this.#directory = directory
    this.#configuration = join(directory, 'etc')
    this.entrance = join(directory, 'queue/public/entrance')
  }

  /**
   * Starts `master` over directories of its own, as root and without a TCP port unless it is `receiving`. Ended and removed when the test
   * ends. `more` are further settings.
   */
  static async start(
    master: string,
    box: { host: string; port: number },
    { receiving, more = '' }: { receiving?: Receiving; more?: string } = {},
  ): Promise<Postfix> {
    const directory = mkdtempSync(join(tmpdir(), 'pillarbox-postfix-'))
    await furnish(directory, box, { receiving, more })
    // when the test runner itself is killed, Postfix goes too
    const parameters = ['--pdeathsig', 'KILL', master, '-c', join(directory, 'etc'), '-d']
    const child = spawn('setpriv', parameters, { stdio: ['ignore', 'ignore', 'pipe'], detached: true })
    let errors = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
    onTestFinished(async () => {
      const ended = child.exitCode === null ? once(child, 'exit') : null
      try {
        // its daemons are of its process group
        process.kill(-child.pid!, 'SIGKILL')
      } catch {
        // all of them had ended
      }
      await ended
      rmSync(directory, { recursive: true, force: true, maxRetries: 5 })
    })
    const postfix = new Postfix(directory)
    await vi
      .waitFor(async () => (await postfix.#dialogue('entrance')).destroy(), timeout)
      .catch((error: unknown) => {
        throw new Error(`Postfix did not start: ${errors}\n${postfix.log}`, { cause: error })
      })
    return postfix
  }

  /** All it logged so far. */
  get log(): string {
    try {
      return readFileSync(join(this.#directory, 'mail.log'), 'utf8')
    } catch {
      return ''
    }
  }

  /** The messages that it keeps for an address, oldest first. */
  kept(address: string): Buffer[] {
    const folder = join(this.#directory, 'mail', address, 'new')
    return existsSync(folder)
      ? readdirSync(folder)
          .toSorted()
          .map((name) => readFileSync(join(folder, name)))
      : []
  }

  /** Waits until the log has this so many times. */
  async logged(words: RegExp, times = 1): Promise<void> {
    const look = (): void => {
      const found = this.log.match(new RegExp(words, 'g'))?.length ?? 0
      if (found < times) throw new Error(`Postfix logged ${words} ${found} times of ${times}:\n${this.log}`)
    }
    await vi.waitFor(look, timeout)
  }

  /** Hands it a message that it sends on at once; answers the queue id. */
  take(mail: Passed): Promise<string> {
    return this.#submit('entrance', mail)
  }

  /** Has it queue a message, looks at the octets it is going to send, and only then lets it go; answers those, with CRLF line ends. */
  async show(mail: Passed): Promise<Buffer> {
    const id = await this.#submit('held', mail)
    const queued = await succeed('postcat', ['-c', this.#configuration, '-qhb', id])
    await succeed('postsuper', ['-c', this.#configuration, '-H', id])
    await succeed('postqueue', ['-c', this.#configuration, '-i', id])
    return Buffer.from(queued.toString('latin1').replaceAll('\n', '\r\n'), 'latin1')
  }

  /** Has it try again at once what it could not deliver so far. */
  async retry(): Promise<void> {
    await succeed('postqueue', ['-c', this.#configuration, '-f'])
  }

  async #submit(service: string, { from = 'sender@sender.test', to, raw, parameters = '' }: Passed): Promise<string> {
    const client = await this.#dialogue(service)
    try {
      await client.reply()
      for (const command of [
        'EHLO client.peer.test',
        `MAIL FROM:<${from}>${parameters}`,
        ...to.map((one) => `RCPT TO:<${one}>`),
        'DATA',
      ]) {
        const answer = await client.say(command)
        if (!/^[23]/.test(answer)) throw new Error(`Postfix answered ${command} with ${answer}`)
      }
      client.send(Buffer.from(Buffer.from(raw).toString('latin1').replaceAll(/^\./gm, '..'), 'latin1'))
      const answer = await client.say('.')
      const id = /^250 .* queued as (\w+)/.exec(answer)?.[1]
      if (id === undefined) throw new Error(`Postfix answered ${answer}`)
      return id
    } finally {
      client.destroy()
    }
  }

  async #dialogue(service: string): Promise<Dialogue> {
    const socket = connect({ path: join(this.#directory, 'queue/public', service) })
    socket.on('error', () => undefined)
    await once(socket, 'connect')
    return new Dialogue(socket)
  }
}

async function furnish(
  directory: string,
  box: { host: string; port: number },
  { receiving, more }: { receiving: Receiving | undefined; more: string },
): Promise<void> {
  const at = (name: string): string => join(directory, name)
  // its daemons run as another user
  chmodSync(directory, 0o755)
  for (const name of ['etc', 'queue', 'queue/pid']) mkdirSync(at(name), { mode: 0o755 })
  const own = ['active', 'bounce', 'corrupt', 'defer', 'deferred', 'flush', 'hold', 'incoming', 'private', 'saved', 'trace']
  const owned = [at('data'), ...own.map((name) => at(`queue/${name}`))]
  await succeed('install', ['-d', '-o', 'postfix', '-m', '0700', ...owned])
  await succeed('install', ['-d', '-o', 'postfix', '-g', 'postdrop', '-m', '0730', at('queue/maildrop')])
  await succeed('install', ['-d', '-o', 'postfix', '-g', 'postdrop', '-m', '0710', at('queue/public')])
  const next = `[${box.host}]:${box.port}`
  writeFileSync(at('etc/main.cf'), settings(directory, next) + (receiving ? await reception(directory, receiving) : '') + more)
  writeFileSync(at('etc/master.cf'), services + (receiving ? receivingServices(receiving.port) : ''))
}

function settings(directory: string, next: string): string {
  return `compatibility_level = 3.6
queue_directory = ${directory}/queue
data_directory = ${directory}/data
maillog_file = ${directory}/mail.log
maillog_file_prefixes = ${directory}
myhostname = relay.peer.test
mydestination =
alias_maps =
local_recipient_maps =
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
smtpd_peername_lookup = no
smtp_dns_support_level = disabled
smtp_host_lookup = native
relayhost = ${next}
transport_maps = inline:{ { clear@pillarbox.test=clear:${next} }, { blunt@pillarbox.test=blunt:${next} },
  { full@away.test=error:5.2.2 The mailbox is over its quota } }
smtputf8_enable = yes
smtp_tls_security_level = encrypt
smtp_tls_loglevel = 1
message_size_limit = 20000000
`
}

async function reception(directory: string, { domain, addresses, tls }: Receiving): Promise<string> {
  await succeed('install', ['-d', '-o', 'postfix', '-m', '0700', join(directory, 'mail')])
  writeFileSync(join(directory, 'etc/chain.pem'), `${tls.key}\n${tls.cert}`, { mode: 0o600 })
  return `smtpd_tls_security_level = may
smtpd_tls_chain_files = ${directory}/etc/chain.pem
smtpd_tls_received_header = yes
smtpd_tls_loglevel = 1
smtpd_relay_restrictions = reject_unauth_destination
virtual_mailbox_domains = ${domain}
virtual_mailbox_base = ${directory}/mail
virtual_mailbox_maps = inline:{ ${addresses.map((address) => `{ ${address} = ${address}/ }`).join(', ')} }
virtual_uid_maps = static:${await numberOf('-u')}
virtual_gid_maps = static:${await numberOf('-g')}
virtual_minimum_uid = 1
virtual_mailbox_limit = 0
`
}

/** Of the user that its daemons run as: `-u` the user's, `-g` the group's. */
async function numberOf(flag: '-u' | '-g'): Promise<string> {
  return (await succeed('id', [flag, 'postfix'])).toString().trim()
}

function receivingServices(port: number): string {
  return `127.0.0.1:${port} inet n - n - - smtpd
virtual unix - n n - - virtual
`
}

const services = `entrance unix n - n - - smtpd
held unix n - n - - smtpd
  -o smtpd_data_restrictions=check_sender_access,static:HOLD
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
tlsmgr unix - - n 1000? 1 tlsmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
flush unix n - n 1000? 0 flush
smtp unix - - n - 10 smtp
clear unix - - n - 10 smtp
  -o smtp_tls_security_level=none
blunt unix - - n - 10 smtp
  -o smtp_discard_ehlo_keywords=size
virtual unix - n n - - virtual
error unix - - n - - error
retry unix - - n - - error
showq unix n - n - - showq
scache unix - - n - 1 scache
anvil unix - - n - 1 anvil
postlog unix-dgram n - n - 1 postlogd
`
