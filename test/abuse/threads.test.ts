import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { publish } from '../support/verified-domain.ts'
import { address, type Attacker, mailWith } from './attacker.ts'
import { type Attack, underAttack } from './harness.ts'

/** Threads that somebody filled before. The messages are copies of one, each a row of its own. */
const attacks: Attack[] = [
  {
    name: 'deletions in a thread of a thousand e-mails whose senders have 60 KB each',
    scopes: ['messages:read', 'messages:write'],
    lasts: 4000,
    prepare: async (attacker) => {
      await attacker.mail(mailWith('Subject: Filled', 'Words.'))
      fill(attacker, 1000, `copies.number || printf('%.60000c', 'a') || '@attacker.test'`)
    },
    run: deleteAll,
    answers: ['200', '429 rate_limited'],
  },
  {
    name: 'deletions in a thread with fifty thousand duplicates',
    scopes: ['messages:read', 'messages:write'],
    lasts: 4000,
    prepare: async (attacker) => {
      await attacker.mail(mailWith('Subject: Filled', 'Words.'))
      fill(attacker, 100, 'from_address')
      fill(attacker, 50_000, 'from_address', true)
    },
    run: deleteAll,
    answers: ['200', '429 rate_limited'],
  },
  {
    name: 'replies in a thread of a hundred thousand e-mails',
    scopes: ['messages:read', 'messages:write'],
    lasts: 4000,
    prepare: async (attacker) => {
      const { dns, operator } = attacker.target.box
      dns.txt('attacker.test', 'v=spf1 ip4:127.0.0.0/8 -all').txt('_dmarc.attacker.test', 'v=DMARC1; p=none')
      for (const domain of (await operator('GET', '/v1/domains')).data) {
        publish(dns, domain)
        await operator('POST', `/v1/domains/${domain.id}/verify`)
      }
      const { body } = await attacker.own('POST', '/emails', {
        body: { to: 'mallory@attacker.test', subject: 'Hello' },
        quiet: true,
      })
      asked.set(attacker.target.identity.id, body.message_id)
      await reply(attacker, 0)
      fill(attacker, 100_000, `copies.number || printf('%.900c', 'a') || '@attacker.test'`)
    },
    run: (attacker) => attacker.repeat(4, (number) => reply(attacker, number)),
    answers: ['250'],
  },
]

underAttack(attacks)

/** The Message-ID of what an identity sent. */
const asked = new Map<string, string>()

/** A reply that DMARC verifies, from an author who did not write before. */
async function reply(attacker: Attacker, number: number): Promise<void> {
  const { identity } = attacker.target
  const author = `m${number}@attacker.test`
  const message = mailWith(`From: ${author}\r\nIn-Reply-To: ${asked.get(identity.id)}`, 'Words.')
  const dialogue = await attacker.smtp(address(number % 4))
  await dialogue.reply()
  for (const line of ['EHLO attacker.test', `MAIL FROM:<${author}>`, `RCPT TO:<${identity.email}>`, 'DATA'])
    await dialogue.say(line)
  dialogue.send(Buffer.concat([message, Buffer.from('.\r\n')]))
  attacker.noteReply(await dialogue.reply())
  dialogue.destroy()
}

/** Copies the newest message that the attacker received, in its thread, with a sender that is given as SQL. */
function fill({ target }: Attacker, times: number, sender: string, duplicates = false): void {
  const database = new DatabaseSync(join(target.box.directory, 'pillarbox.db'), { timeout: 60_000 })
  const columns = (database.prepare('PRAGMA table_info(emails)').all() as { name: string }[]).map(({ name }) => name)
  const other: Record<string, string> = {
    id: `'email_0' || substr(lower(hex(randomblob(13))), 1, 25)`,
    from_address: sender,
    duplicate_of: duplicates ? 'original.id' : 'NULL',
  }
  const copied = columns.filter((name) => name !== 'seq')
  database.exec(
    `INSERT INTO emails (${copied.join(', ')})
      WITH RECURSIVE copies (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM copies WHERE number < ${times})
      SELECT ${copied.map((name) => other[name] ?? `original.${name}`).join(', ')} FROM copies, (
        SELECT * FROM emails WHERE identity_id = '${target.identity.id}' AND direction = 'inbound' ORDER BY seq DESC LIMIT 1
      ) AS original`,
  )
  if (!duplicates)
    database.exec(`UPDATE threads SET message_count = message_count + ${times} WHERE identity_id = '${target.identity.id}'`)
  database.close()
}

async function deleteAll(attacker: Attacker): Promise<void> {
  const ids: string[] = []
  for (let cursor = ''; ids.length < 500;) {
    const { body } = await attacker.own('GET', `/emails?limit=100${cursor}`, { quiet: true })
    ids.push(...body.data.map(({ id }: { id: string }) => id))
    if (body.next_cursor === null) break
    cursor = `&cursor=${body.next_cursor}`
  }
  await attacker.repeat(8, async () => {
    const id = ids.pop()
    if (id === undefined) await attacker.hold()
    else await attacker.own('DELETE', `/emails/${id}`)
  })
}
