import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startNameServer } from '../dns.ts'
import type { Work } from '../ingest.ts'
import { senderDomain, senderZone } from '../messages.ts'
import { boxDomain } from '../seed.ts'
import { ender, greeting, type MailServer, shareOf } from './mail-server.ts'
import { freePort } from './postfix.ts'

/** mox takes at most so many connections from one address. */
const sessions = 30
const share = 1 / 10
/** Messages to one account in all rounds: it takes at most 500 a minute from one address, and goes through those of a day before each. */
const ofAccount = 50
/** It asks the name servers of resolv.conf, which are always on port 53. */
const names = { host: '127.53.0.1', port: 53 }

/**
 * mox by the binary that BENCH_MOX names: it verifies SPF, DKIM and DMARC by the name server of its own, judges reputation and junk, stores and indexes each
 * message in the account of its recipient, and forces it to disk. Its wait before the first message of a sender is off. Needs root.
 */
export async function startMox(directory: string, work: Work, rounds: number): Promise<MailServer> {
  const { messages } = shareOf(work, share)
  const program = process.env['BENCH_MOX']
  if (program === undefined || !existsSync(program)) {
    throw new Error(`BENCH_MOX names ${program === undefined ? 'no binary' : `${program}, which is not there`}.`)
  }
  const [host, port] = ['127.0.0.1', await freePort()]
  mkdirSync(directory, { recursive: true })
  const accounts = Math.ceil((messages * (rounds + 1)) / ofAccount)
  const files = {
    'mox.conf': server({ host, port }),
    'domains.conf': domains(messages, accounts),
    'resolv.conf': `nameserver ${names.host}\n`,
    // it would be asked before the name server
    hosts: '',
    // it does not start without; nobody signs in
    adminpasswd: '-',
  }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text)
  // a sender must be able to receive mail, and the name of its address must lead back
  const zone = {
    ...senderZone,
    a: { ...senderZone.a, [senderDomain]: '127.0.0.1' },
    ptr: { '127.0.0.1': `mail.${senderDomain}` },
  }
  const nameServer = await startNameServer(directory, zone, names)
  const script =
    'for name in resolv.conf hosts; do mount --bind "$0/$name" "/etc/$name" || exit; done; exec "$1" localserve -dir "$0"'
  const child = spawn('unshare', ['--mount', 'sh', '-c', script, directory, program], { stdio: ['ignore', 'ignore', 'pipe'] })
  const end = ender(child, 'SIGTERM')
  const stop = async (): Promise<void> => {
    await end()
    nameServer.stop()
  }
  const does = `SPF, DKIM, DMARC, reputation and junk checked, ${accounts} accounts`
  try {
    const said = await greeting('mox', child, { host, port })
    return { name: 'mox', does, host, port, pid: child.pid!, sessions, share, stop, said }
  } catch (error) {
    await stop()
    throw error
  }
}

function server({ host, port }: { host: string; port: number }): string {
  return `DataDir: .
LogLevel: info
User: ${process.getuid!()}
Hostname: peer.test
AdminPasswordFile: adminpasswd
Listeners:
	bench:
		IPs:
			- ${host}
		SMTP:
			Enabled: true
			Port: ${port}
			NoSTARTTLS: true
Postmaster:
	Account: a0
	Mailbox: Inbox
`
}

/** The recipients of the generator, spread evenly over the accounts, which have the settings of \`mox localserve\`. */
function domains(recipients: number, accounts: number): string {
  const addresses = Array.from({ length: accounts }, (): string[] => [])
  for (let number = 1; number <= recipients; number++) addresses[number % accounts]!.push(`${number}box@${boxDomain}`)
  const written = addresses.map(
    (own, index) => `	a${index}:
		Domain: ${boxDomain}
		Destinations:
			a${index}@${boxDomain}: nil
${own.map((address) => `			${address}: nil\n`).join('')}		RejectsMailbox: Rejects
		AutomaticJunkFlags:
			Enabled: true
			JunkMailboxRegexp: ^(junk|spam)
			NeutralMailboxRegexp: ^(inbox|neutral|postmaster|dmarc|tlsrpt|rejects)
		JunkFilter:
			Threshold: 0.950000
			Params:
				Onegrams: true
				MaxPower: 0.010000
				TopWords: 10
				IgnoreWords: 0.100000
				RareWords: 2
		NoFirstTimeSenderDelay: true
`,
  )
  return `Domains:
	${boxDomain}: nil
Accounts:
${written.join('')}`
}
