import { chmodSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { spawnOver } from '../../test/torture/peers/overlay.ts'
import { eximPackages } from '../../test/torture/peers/servers.ts'
import { boxDomain } from '../seed.ts'
import { ender, greeting, type MailServer } from './mail-server.ts'
import { freePort, openToAll } from './postfix.ts'

/** Exim from its Debian packages, unpacked; it forces each message to disk in its queue, and delivers nothing. Needs root. */
export async function startExim(directory: string): Promise<MailServer> {
  const [host, port, spool] = ['127.0.0.1', await freePort(), join(directory, 'spool')]
  mkdirSync(spool, { recursive: true })
  openToAll(directory)
  // its processes run as another user
  chmodSync(spool, 0o777)
  const layer = {
    packages: eximPackages,
    users: ['Debian-exim'],
    files: { 'etc/exim4/exim4.conf': config({ host, port, spool }) },
  }
  const child = await spawnOver(layer, directory, ['/usr/sbin/exim4', '-bdf'])
  const said = await greeting('Exim', child, { host, port })
  return {
    name: 'Exim',
    does: 'queue only, checks nothing',
    host,
    port,
    pid: child.pid!,
    clear() {
      for (const name of ['input', 'msglog']) rmSync(join(spool, name), { recursive: true, force: true })
    },
    stop: ender(child, 'SIGKILL'),
    said,
  }
}

function config({ host, port, spool }: { host: string; port: number; spool: string }): string {
  return `primary_hostname = peer.test
spool_directory = ${spool}
log_file_path = ${spool}/%slog
disable_ipv6 = true
keep_environment =
host_lookup =
queue_only = true
smtp_accept_max = 200
smtp_connect_backlog = 128
smtp_accept_max_per_connection = 0
smtp_accept_queue_per_connection = 0
domainlist local_domains = ${boxDomain}
local_interfaces = ${host}
daemon_smtp_ports = ${port}
acl_smtp_rcpt = all
acl_smtp_data = all
begin acl
all:
  accept
begin routers
local:
  driver = accept
  domains = +local_domains
  transport = local
begin transports
local:
  driver = appendfile
  file = /dev/null
  user = Debian-exim
`
}
