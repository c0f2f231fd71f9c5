import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { succeed } from '../../support/program.ts'
import type { Place } from './servers.ts'

/** Writes what an instance of Postfix needs that keeps all mail for one domain in one folder. */
export async function postfixFiles(place: Place): Promise<void> {
  const at = (name: string): string => join(place.directory, name)
  // its daemons run as another user
  chmodSync(place.directory, 0o755)
  for (const name of ['etc', 'queue', 'queue/pid']) mkdirSync(at(name), { mode: 0o755 })
  const own = ['active', 'bounce', 'corrupt', 'defer', 'deferred', 'flush', 'hold', 'incoming', 'private', 'saved', 'trace']
  const owned = [at('data'), at('mail'), ...own.map((name) => at(`queue/${name}`))]
  await succeed('install', ['-d', '-o', 'postfix', '-m', '0700', ...owned])
  await succeed('install', ['-d', '-o', 'postfix', '-g', 'postdrop', '-m', '0730', at('queue/maildrop')])
  await succeed('install', ['-d', '-o', 'postfix', '-g', 'postdrop', '-m', '0710', at('queue/public')])
  const [user, group] = [await numberOf('-u'), await numberOf('-g')]
  writeFileSync(at('etc/main.cf'), settings(place, user, group))
  writeFileSync(at('etc/master.cf'), services(place))
}

/** Of the user that its daemons run as: `-u` the user's, `-g` the group's. */
async function numberOf(flag: '-u' | '-g'): Promise<string> {
  return (await succeed('id', [flag, 'postfix'])).toString().trim()
}

function settings({ directory, domain, hostname, certFile, keyFile, box }: Place, user: string, group: string): string {
  return `compatibility_level = 3.6
queue_directory = ${directory}/queue
data_directory = ${directory}/data
maillog_file = ${directory}/mail.log
maillog_file_prefixes = ${directory}
myhostname = ${hostname}
mydestination =
alias_maps =
local_recipient_maps =
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
smtpd_peername_lookup = no
smtpd_tls_security_level = encrypt
smtpd_tls_chain_files = ${keyFile}, ${certFile}
smtpd_relay_restrictions = permit_mynetworks, reject_unauth_destination
mynetworks = 127.0.0.0/8
local_header_rewrite_clients =
transport_maps = inline:{ ${box.domain}=smtp:[localhost]:${box.port} }
smtp_host_lookup = native
smtp_tls_security_level = verify
smtp_tls_CAfile = ${box.certFile}
smtputf8_enable = no
virtual_mailbox_domains = ${domain}
virtual_mailbox_base = ${directory}
virtual_mailbox_maps = static:mail/
virtual_uid_maps = static:${user}
virtual_gid_maps = static:${group}
virtual_minimum_uid = 1
virtual_mailbox_limit = 0
message_size_limit = 30000000
`
}

function services({ host, port }: Place): string {
  return `${host}:${port} inet n - n - - smtpd
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
tlsmgr unix - - n 1000? 1 tlsmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
virtual unix - n n - - virtual
smtp unix - - n - - smtp
error unix - - n - - error
retry unix - - n - - error
anvil unix - - n - 1 anvil
postlog unix-dgram n - n - 1 postlogd
`
}
