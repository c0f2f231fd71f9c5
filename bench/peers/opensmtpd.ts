import { chmodSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { spawnOver } from '../../test/torture/peers/overlay.ts'
import { opensmtpdPackages } from '../../test/torture/peers/servers.ts'
import { boxDomain } from '../seed.ts'
import { ender, greeting, type MailServer, waitForFiles } from './mail-server.ts'
import { countFiles, freePort, openToAll } from './postfix.ts'

/** OpenSMTPD from its Debian packages, unpacked; it forces each message to disk in its queue, and again in a maildir. Needs root. */
export async function startOpenSmtpd(directory: string): Promise<MailServer> {
  const [host, port] = ['127.0.0.1', await freePort()]
  const [mail, queue] = [join(directory, 'mail'), join(directory, 'spool')]
  for (const path of [mail, queue]) mkdirSync(path, { recursive: true })
  openToAll(directory)
  // it writes as the owner of the mailbox
  chmodSync(mail, 0o777)
  chmodSync(queue, 0o711)
  const config = `table users { "@" = mail }
listen on ${host} port ${port} hostname peer.test
smtp limit max-mails 1000000
action keep maildir "${mail}" virtual <users>
match from any for domain "${boxDomain}" action keep
`
  const layer = { packages: opensmtpdPackages, users: ['opensmtpd', 'opensmtpq'], files: { 'etc/smtpd.conf': config } }
  // what is over the root is in memory: its queue has to be on the disk
  const script = 'mkdir -p /var/spool/smtpd && mount --bind "$0" /var/spool/smtpd && exec /usr/sbin/smtpd -d'
  const child = await spawnOver(layer, directory, ['sh', '-c', script, queue])
  const said = await greeting('OpenSMTPD', child, { host, port })
  const fresh = join(mail, 'new')
  return {
    name: 'OpenSMTPD',
    does: 'to maildir, checks nothing',
    host,
    port,
    pid: child.pid!,
    // those beyond its queue of waiting connections, which is short, would try again after a second
    sessions: 10,
    share: 1 / 4,
    delivered: (count) => waitForFiles('OpenSMTPD', () => countFiles(fresh), count),
    clear() {
      for (const name of readdirSync(fresh)) rmSync(join(fresh, name))
    },
    stop: ender(child, 'SIGKILL'),
    said,
  }
}
