import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { boxDomain } from '../seed.ts'

/** A Postfix instance of our own that keeps mail in a maildir, each message forced to disk twice: in its queue and in the maildir. */
export interface Postfix {
  host: string
  port: number
  pid: number
  /** Waits until this many messages lie in the maildir. */
  delivered(count: number): Promise<void>
  /** Empties the maildir. */
  clear(): void
  stop(): void
}

const nobody = 65_534

/** The longest wait for the last delivery, in milliseconds. */
const timeout = 60_000

/** Starts it over a configuration of its own, beside any other instance; needs root. With a relay it passes all mail on to that port. */
export async function startPostfix(directory: string, relay?: number): Promise<Postfix> {
  const port = await freePort()
  const paths = {
    config: join(directory, 'postfix'),
    queue: join(directory, 'queue'),
    data: join(directory, 'state'),
    mail: join(directory, 'mail'),
  }
  for (const path of Object.values(paths)) mkdirSync(path, { recursive: true, mode: 0o755 })
  openToAll(directory)
  chownSync(paths.mail, nobody, nobody)
  const owner = Number(execFileSync('id', ['-u', 'postfix'], { encoding: 'utf8' }))
  chownSync(paths.data, owner, owner)
  writeFileSync(
    join(paths.config, 'main.cf'),
    mainConfig(paths) + (relay === undefined ? '' : `relayhost = [127.0.0.1]:${relay}\n`),
  )
  writeFileSync(join(paths.config, 'master.cf'), masterConfig(port))
  execFileSync('postfix', ['-c', paths.config, 'start'], { stdio: 'ignore' })
  const stop = (): void => void execFileSync('postfix', ['-c', paths.config, 'stop'], { stdio: 'ignore' })
  // it is a daemon: nobody else would end it when the bench is interrupted
  process.once('exit', stop)
  const pid = Number(readFileSync(join(paths.queue, 'pid/master.pid'), 'utf8'))
  const fresh = join(paths.mail, 'box/new')
  return {
    host: '127.0.0.1',
    port,
    pid,
    async delivered(count) {
      const end = performance.now() + timeout
      while (countFiles(fresh) < count) {
        if (performance.now() > end) throw new Error(`Postfix has delivered ${countFiles(fresh)} of ${count} messages`)
        await pause(50)
      }
    },
    clear: () => rmSync(join(paths.mail, 'box'), { recursive: true, force: true }),
    stop() {
      process.off('exit', stop)
      stop()
    },
  }
}

function mainConfig({ queue, data, mail }: { queue: string; data: string; mail: string }): string {
  return `compatibility_level = 3.6
queue_directory = ${queue}
data_directory = ${data}
command_directory = /usr/sbin
daemon_directory = /usr/lib/postfix/sbin
mail_owner = postfix
setgid_group = postdrop
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
myhostname = peer.test
mydestination =
mynetworks = 127.0.0.0/8
alias_maps =
local_recipient_maps =
message_size_limit = 26214400
smtpd_client_connection_count_limit = 0
smtpd_client_connection_rate_limit = 0
virtual_mailbox_domains = ${boxDomain}
virtual_mailbox_base = ${mail}
virtual_mailbox_maps = static:box/
virtual_mailbox_limit = 0
virtual_uid_maps = static:${nobody}
virtual_gid_maps = static:${nobody}
`
}

function masterConfig(port: number): string {
  return [
    service(`127.0.0.1:${port}`, 'inet', 'n', '-', '100', 'smtpd'),
    service('cleanup', 'unix', 'n', '-', '0', 'cleanup'),
    service('qmgr', 'unix', 'n', '300', '1', 'qmgr'),
    service('rewrite', 'unix', '-', '-', '-', 'trivial-rewrite'),
    ...['bounce', 'defer', 'trace'].map((name) => service(name, 'unix', '-', '-', '0', 'bounce')),
    service('proxymap', 'unix', '-', '-', '-', 'proxymap'),
    // it takes on the identity of the mailbox's owner, so it starts as root
    'virtual unix - n n - 100 virtual\n',
    service('smtp', 'unix', '-', '-', '100', 'smtp'),
    service('anvil', 'unix', '-', '-', '1', 'anvil'),
    service('error', 'unix', '-', '-', '-', 'error'),
    service('retry', 'unix', '-', '-', '-', 'error'),
  ].join('')
}

function service(name: string, type: string, isPrivate: string, wakeup: string, most: string, command: string): string {
  return `${name} ${type} ${isPrivate} - n ${wakeup} ${most} ${command}\n`
}

/** Lets every user enter the directory and those above: the daemons of a mail server run as another and must reach what is theirs. */
export function openToAll(directory: string): void {
  for (let path = directory; path.length > 1; path = join(path, '..')) chmodSync(path, path === '/tmp' ? 0o1777 : 0o755)
}

/** The files of a directory; none where it is not there. */
export function countFiles(directory: string): number {
  try {
    return readdirSync(directory).length
  } catch {
    return 0
  }
}

/** A port that nobody listens on now. */
export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const address = probe.address()
  probe.close()
  await once(probe, 'close')
  if (address === null || typeof address === 'string') throw new Error('not listening on TCP')
  return address.port
}
