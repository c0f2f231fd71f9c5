import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { succeed } from '../../support/program.ts'

/** A message for a server on loopback; Latin-1 stands for its bytes, its lines end in CRLF. */
export interface Delivery {
  host: string
  port: number
  from: string
  to: string
  text: string
  /** Where files may be written. */
  directory: string
  /** By STARTTLS with a certificate that is in this file; undefined: in the clear. */
  trusted?: string | undefined
}

/** A mail program of somebody else. */
export interface Client {
  name: string
  program: string
  /** Its package of Debian. */
  install: string
  send(delivery: Delivery): Promise<unknown>
  /** What it sends after the message. */
  adds?: (text: string) => string
  /** It writes the header itself. */
  keepsBody?: true
  /** It knows no TLS. */
  clear?: true
}

const smtplib = `
import smtplib, ssl, sys
host, port, sender, recipient, *trusted = sys.argv[1:]
with smtplib.SMTP(host, int(port), 'client.test', timeout=60) as server:
    if trusted:
        server.starttls(context=ssl.create_default_context(cafile=trusted[0]))
    server.sendmail(sender, [recipient], sys.stdin.buffer.read(), ['BODY=8BITMIME'])`

/** The header of a message for `git send-email`, which takes recipients from it, and needs a subject. */
const patch = [
  'From: a@client.test',
  'Subject: [PATCH] Gr\xc3\xbc\xc3\x9fe',
  'MIME-Version: 1.0',
  'Content-Type: text/plain; charset=UTF-8',
  'Content-Transfer-Encoding: 8bit',
].join('\r\n')

export const clients: Client[] = [
  {
    name: 'swaks',
    program: '/usr/bin/swaks',
    install: 'swaks',
    // a line where there is no body
    adds: (text) => (text.indexOf('\r\n\r\n') === text.length - 4 ? '\r\n' : ''),
    send: ({ host, port, from, to, trusted, ...message }) =>
      succeed('/usr/bin/swaks', [
        ...(trusted === undefined ? [] : ['--tls', '--tls-verify', '--tls-ca-path', trusted]),
        '--server',
        host,
        '--port',
        String(port),
        '--helo',
        'client.test',
        '--from',
        from,
        '--to',
        to,
        '--data',
        `@${file(message, 'unended')}`,
        '--silent',
        '2',
      ]),
  },
  {
    name: 'curl',
    program: '/usr/bin/curl',
    install: 'curl',
    send: ({ host, port, from, to, trusted, ...message }) =>
      succeed('/usr/bin/curl', [
        ...(trusted === undefined ? [] : ['--ssl-reqd', '--cacert', trusted]),
        '--silent',
        '--show-error',
        '--mail-from',
        from,
        '--mail-rcpt',
        to,
        '--upload-file',
        file(message, 'whole'),
        `smtp://${host}:${port}/client.test`,
      ]),
  },
  {
    name: 'smtplib',
    program: '/usr/bin/python3',
    install: 'python3',
    send: byPython,
  },
  {
    name: 'msmtp',
    program: '/usr/bin/msmtp',
    install: 'msmtp',
    send: ({ host, port, from, to, text, trusted }) =>
      succeed(
        '/usr/bin/msmtp',
        [
          '--file=/dev/null',
          `--host=${host}`,
          `--port=${port}`,
          '--domain=client.test',
          `--from=${from}`,
          ...(trusted === undefined ? ['--tls=off'] : ['--tls=on', '--tls-starttls=on', `--tls-trust-file=${trusted}`]),
          '--auth=off',
          '--set-from-header=off',
          '--set-date-header=off',
          '--',
          to,
        ],
        { input: Buffer.from(text.replaceAll('\r\n', '\n'), 'latin1') },
      ),
  },
  {
    name: 'smtp-source',
    program: '/usr/sbin/smtp-source',
    install: 'postfix',
    clear: true,
    adds: () => '\r\n',
    send: ({ host, port, from, to, ...message }) =>
      succeed('/usr/sbin/smtp-source', [
        '-m',
        '1',
        '-M',
        'client.test',
        '-f',
        from,
        '-t',
        to,
        '-F',
        file(message, 'lines'),
        `inet:${host}:${port}`,
      ]),
  },
  {
    name: 'git send-email',
    program: '/usr/lib/git-core/git-send-email',
    install: 'git-email',
    keepsBody: true,
    send: ({ host, port, from, to, directory, text, trusted }) =>
      succeed(
        '/usr/bin/git',
        [
          'send-email',
          '--quiet',
          '--no-validate',
          '--confirm=never',
          '--suppress-cc=all',
          '--no-thread',
          '--8bit-encoding=UTF-8',
          '--transfer-encoding=8bit',
          '--smtp-domain=client.test',
          ...(trusted === undefined ? [] : ['--smtp-encryption=tls', `--smtp-ssl-cert-path=${trusted}`]),
          `--smtp-server=${host}`,
          `--smtp-server-port=${port}`,
          `--envelope-sender=${from}`,
          `--from=${from}`,
          `--to=${to}`,
          file({ text: patch + text.slice(text.indexOf('\r\n\r\n')), directory }, 'lines'),
        ],
        { cwd: directory, env: committer(directory, from) },
      ),
  },
]

export function byPython({ host, port, from, to, text, trusted }: Delivery): Promise<unknown> {
  const words = [host, String(port), from, to, ...(trusted === undefined ? [] : [trusted])]
  return succeed('/usr/bin/python3', ['-c', smtplib, ...words], { input: Buffer.from(text, 'latin1') })
}

function committer(directory: string, email: string): Record<string, string> {
  const person = { GIT_AUTHOR_NAME: 'A', GIT_AUTHOR_EMAIL: email, GIT_COMMITTER_NAME: 'A', GIT_COMMITTER_EMAIL: email }
  return { ...person, HOME: directory, GIT_CONFIG_NOSYSTEM: '1' }
}

/** Why the first missing one is not there. */
export function missingClient(): string | undefined {
  const missing = clients.find(({ program }) => !existsSync(program))
  return missing && `${missing.name} is not installed (apt-get install ${missing.install})`
}

/** Writes the message for a program that sends a file as it is, that sends its lines, or that takes lines and ends the last itself. */
function file({ text, directory }: Pick<Delivery, 'text' | 'directory'>, form: 'whole' | 'lines' | 'unended'): string {
  const path = join(directory, 'message.eml')
  const content = form === 'unended' ? text.replace(/\r\n$/, '') : text
  writeFileSync(path, form === 'whole' ? content : content.replaceAll('\r\n', '\n'), 'latin1')
  return path
}
