import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Dialogue } from '../support/smtp.ts'
import { address, type Attacker, mailWith } from './attacker.ts'
import { type Attack, underAttack } from './harness.ts'

const mebibyte = 1024 * 1024

/** What a stranger does to the port where mail comes in. */
const attacks: Attack[] = [
  {
    name: 'connections from one address, as many as there can be',
    scopes: [],
    run: (attacker) =>
      attacker.repeat(50, async () => {
        const dialogue = await attacker.smtp().catch(() => undefined)
        attacker.noteReply((await dialogue?.reply()) ?? '')
      }),
    answers: ['220', '421', 'closed'],
  },
  {
    name: 'four hundred silent connections',
    scopes: [],
    run: async (attacker) => {
      await Promise.all(Array.from({ length: 400 }, (_, number) => greeted(attacker, address(number % 20))))
      await attacker.hold()
    },
    answers: ['220', 'closed'],
  },
  {
    name: 'a thousand idle connections of fifty networks, opened again when they are closed',
    scopes: [],
    lasts: 5000,
    run: async (attacker) => {
      await attacker.repeat(1000, async (number) => {
        const dialogue = await greeted(attacker, address(number % 50))
        const isOpen = (): boolean => dialogue?.closed === false && !attacker.signal.aborted
        while (isOpen()) await sleep(100)
      })
    },
    answers: ['220', '421', 'closed'],
  },
  {
    name: 'two hundred that send an octet now and then',
    scopes: [],
    run: async (attacker) => {
      const all = await Promise.all(Array.from({ length: 200 }, (_, number) => sending(attacker, address(number % 20))))
      await attacker.repeat(1, async () => {
        for (const dialogue of all) dialogue?.send('a')
        await sleep(100)
      })
    },
    answers: ['354', '452', 'closed'],
  },
  {
    name: 'messages that fill the memory and do not end',
    scopes: [],
    run: async (attacker) => {
      const all = await Promise.all(Array.from({ length: 40 }, (_, number) => sending(attacker, address(number % 4))))
      for (const dialogue of all)
        dialogue?.send(mailWith('Subject: Large', Buffer.alloc(20 * mebibyte, 'a'.repeat(900).concat('\r\n'))))
      await attacker.hold()
    },
    answers: ['354', '421', '451', '452', 'closed'],
  },
  heldFromOneAddress(),
  ...(
    [
      ['letters', 'a'.repeat(998), 4],
      ['nothing', '', 20],
      ['two dots', '..', 20],
    ] as const
  ).map(([what, line, connections]): Attack => ({
    name: `messages without an end, of lines of ${what}`,
    scopes: [],
    lasts: 2000,
    run: async (attacker) => {
      const piece = Buffer.alloc(mebibyte, `${line}\r\n`)
      await attacker.repeat(connections, async (number) => {
        const dialogue = await sending(attacker, address(number % 4))
        if (!dialogue) return
        while (!dialogue.closed && !attacker.signal.aborted && dialogue.socket.writableLength < 8 * mebibyte) {
          dialogue.send(piece)
          await new Promise((resolve) => setImmediate(resolve))
        }
        dialogue.destroy()
      })
    },
    answers: ['354', '421', '452', '552', 'closed'],
  })),
  {
    name: 'the largest messages, one after the other',
    scopes: [],
    run: (attacker) => {
      const message = mailWith('Subject: Large', Buffer.alloc(24 * mebibyte, 'a'.repeat(900).concat('\r\n')))
      return attacker.repeat(8, (number) => attacker.mail(message, address(number % 8)))
    },
    answers: ['250', '421', '451', '452', 'closed'],
  },
  ...(
    [
      ['commands that are none', 'NONSENSE\r\n'],
      ['NOOP', 'NOOP\r\n'],
      ['RSET', 'RSET\r\n'],
      ['EHLO', 'EHLO attacker.test\r\n'],
      ['VRFY', 'VRFY somebody\r\n'],
      ['recipients that there are not', 'RCPT TO:<nobody@pillarbox.test>\r\n'],
      ['octets of zero', '\0\r\n'],
    ] as const
  ).map(([name, command]): Attack => {
    const many = `EHLO attacker.test\r\nMAIL FROM:<a@b.test>\r\n${command.repeat(20_000)}`
    return {
      name: `20,000 times in one packet: ${name}`,
      scopes: [],
      run: (attacker) => burst(attacker, many),
      answers: ['220', '421', 'closed'],
    }
  }),
  {
    name: '20,000 recipients in one packet',
    scopes: [],
    run: (attacker) => {
      const one = `RCPT TO:<${attacker.target.identity.email}>\r\n`
      return burst(attacker, `EHLO attacker.test\r\nMAIL FROM:<a@b.test>\r\n${one.repeat(20_000)}`)
    },
    answers: ['220', '421', 'closed'],
  },
  {
    name: 'a command of megabytes',
    scopes: [],
    run: (attacker) => burst(attacker, Buffer.alloc(4 * mebibyte, 'A')),
    answers: ['220', '421', 'closed'],
  },
  {
    name: 'who speaks HTTP, or before the greeting',
    scopes: [],
    run: (attacker) => burst(attacker, 'POST / HTTP/1.1\r\nHost: x\r\n\r\n', false),
    answers: ['421', '554', 'closed'],
  },
  {
    name: 'handshakes of TLS that are none',
    scopes: [],
    run: (attacker) =>
      attacker.repeat(20, async (number) => {
        const dialogue = await attacker.smtp(address(number % 8)).catch(() => undefined)
        await dialogue?.reply()
        await dialogue?.say('EHLO attacker.test')
        attacker.noteReply((await dialogue?.say('STARTTLS')) ?? '')
        dialogue?.send(Buffer.alloc(20_000, 0x16))
        dialogue?.destroy()
      }),
    answers: ['220', '421', '454', 'closed'],
  },
  {
    name: 'mail that answers mail nobody sent, to a mailbox of eight thousand',
    scopes: [],
    prepare: async (attacker) => {
      await attacker.mail(mailWith('Subject: One', 'One of many\r\n'))
      multiplyMail(attacker, 8000)
    },
    run: (attacker) =>
      attacker.repeat(2, (number) =>
        attacker.mail(mailWith(`In-Reply-To: <${number}@nobody.test>`, 'An answer\r\n'), address(number % 2)),
      ),
    answers: ['250', '421', '451', '452', 'closed'],
  },
  ...toMany(),
]

underAttack(attacks)

/** Four messages of one address that take all but 64 octets of the memory for large messages, and stay. */
function heldFromOneAddress(): Attack {
  let all: (Dialogue | undefined)[] = []
  return {
    name: 'messages of one address that leave no memory',
    scopes: [],
    prepare: async (attacker) => {
      all = []
      for (const lines of [209_715, 209_715, 209_715, 41_943]) {
        const dialogue = await sending(attacker, address(0))
        dialogue?.send('Subject: Large\r\n\r\n'.padStart(100, 'X: y\r\n'))
        dialogue?.send(
          'a'
            .repeat(98)
            .concat('\r\n')
            .repeat(lines - 1),
        )
        all.push(dialogue)
      }
      await sleep(2000)
    },
    run: async (attacker) => {
      await attacker.hold()
      attacker.noteReply((await all.at(-1)?.say('.')) ?? '')
    },
    lasts: 13_000,
    answers: ['250'],
  }
}

/** Messages of which each of many recipients gets a copy. */
function toMany(): Attack[] {
  const people = Array.from({ length: 900 }, (_, number) => `a${number}@x${number}.test`).join(',\r\n ')
  const references = Array.from({ length: 100 }, (_, number) => `<${number}.${'r'.repeat(300)}@x.test>`).join('\r\n ')
  const links = Array.from({ length: 100 }, (_, number) => `https://a.test/${number}${'x'.repeat(8000)}`).join('\r\n')
  const attachments = Array.from({ length: 990 }, (_, number) => part(number)).join('')
  const multipart = 'Content-Type: multipart/mixed; boundary=b'
  const messages: [name: string, head: string, body: () => string][] = [
    ['to a hundred tags of one mailbox: 260 KB of words', 'Subject: Many', () => words(260_000)],
    ['to a hundred tags of one mailbox: 5 MB of HTML', 'Content-Type: text/html', () => `<p>${words(4_900_000)}`],
    [
      'to a hundred tags of one mailbox: 900 people and 100 references',
      `To: ${people}\r\nReferences: ${references}`,
      () => words(260_000),
    ],
    ['to a hundred tags of one mailbox: 100 links of 8 KB', 'Subject: Many', () => links],
    ['to a hundred tags of one mailbox: 990 attachments', multipart, () => `${attachments}--b--\r\n`],
  ]
  const answers = ['250', '421', '451', '452', 'closed']
  const identities: string[] = []
  return [
    ...messages.map(([name, head, body]): Attack => ({
      name,
      scopes: [],
      run: (attacker) => sendMany(attacker, head, body(), tagged(attacker.target.identity.email)),
      answers,
    })),
    {
      name: 'to a hundred identities: 260 KB of words',
      scopes: ['identities:write', 'identities:read'],
      wholeAccount: true,
      prepare: async (attacker) => {
        identities.length = 0
        while (identities.length < 100) {
          const { status, body: identity } = await attacker.call('POST', '/v1/identities', { body: {}, quiet: true })
          if (status === 201) identities.push(identity.email)
          else await sleep(500)
        }
      },
      run: (attacker) => sendMany(attacker, 'Subject: Many', words(260_000), identities),
      answers,
    },
  ]
}

/** Copies the message of the attacker's mailbox so many times, as if each had been received, in a thread of its own. */
function multiplyMail({ target }: Attacker, times: number): void {
  const database = new DatabaseSync(join(target.box.directory, 'pillarbox.db'), { timeout: 60_000 })
  const thread = "'thread_' || printf('%026d', i)"
  const fresh: Record<string, Record<string, string>> = {
    threads: { id: thread },
    emails: { id: "'email_' || printf('%026d', i)", message_id: "'<' || i || '@attacker.test>'", thread_id: thread },
  }
  for (const [table, changed] of Object.entries(fresh)) {
    const columns = database.prepare("SELECT name FROM pragma_table_info(?) WHERE name <> 'seq'").all(table)
    const names = columns.map(({ name }) => String(name))
    database
      .prepare(
        `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
          INSERT INTO ${table} (${names.join(', ')}) SELECT ${names.map((name) => changed[name] ?? name).join(', ')}
          FROM n, (SELECT * FROM ${table} WHERE identity_id = ? LIMIT 1)`,
      )
      .run(times, target.identity.id)
  }
  database.close()
}

/** Sends one message after the other to all of these, from two connections. */
function sendMany(attacker: Attacker, head: string, body: string, to: string[]): Promise<void> {
  return attacker.repeat(2, (number) => attacker.mail(mailWith(head, body), address(number % 2), to))
}

/** Random words in short lines. */
function words(characters: number): string {
  let text = ''
  while (text.length < characters) text += `${Math.random().toString(36).slice(2, 7)}${text.length % 60 < 6 ? '\r\n' : ' '}`
  return text
}

/** An attachment with a long name and a long Content-ID. */
function part(number: number): string {
  const name = `${'n'.repeat(240)}${number}`
  return `--b\r\nContent-Type: a/b\r\nContent-ID: <${'c'.repeat(990)}>\r\nContent-Disposition: attachment; filename="${name}"\r\n\r\nx\r\n`
}

/** A hundred addresses of one mailbox. */
function tagged(email: string): string[] {
  return Array.from({ length: 100 }, (_, number) => email.replace('@', `+${number}@`))
}

/** Connected and greeted. */
async function greeted(attacker: Attacker, from: string): Promise<Dialogue | undefined> {
  const dialogue = await attacker.smtp(from).catch(() => undefined)
  attacker.noteReply((await dialogue?.reply()) ?? '')
  return dialogue
}

/** After DATA, when the message may be sent; what DATA or a command before it was answered is noted. */
async function sending(attacker: Attacker, from: string): Promise<Dialogue | undefined> {
  const dialogue = await attacker.smtp(from).catch(() => undefined)
  if (!dialogue) {
    attacker.note('closed')
    return undefined
  }
  await dialogue.reply()
  await dialogue.say('EHLO attacker.test')
  attacker.noteReply(await dialogue.begin([attacker.target.identity.email]))
  return dialogue
}

/** Sends these octets on one connection after another; notes the greeting and what the last reply was. */
async function burst(attacker: Attacker, octets: string | Buffer, polite = true): Promise<void> {
  await attacker.repeat(4, async (number) => {
    const dialogue = await attacker.smtp(address(number % 4)).catch(() => undefined)
    if (!dialogue) return attacker.note('closed')
    if (polite) attacker.noteReply(await dialogue.reply())
    dialogue.send(octets)
    await Promise.race([dialogue.end(), attacker.hold()])
    const last = dialogue.transcript.trimEnd().split('\r\n').at(-1) ?? ''
    if (dialogue.closed) attacker.noteReply(last)
    dialogue.destroy()
  })
}
