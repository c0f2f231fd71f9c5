import { openStore } from '../support/open-store.ts'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { MailSink } from '../support/mail-sink.ts'
import { sendingBox } from '../support/outgoing.ts'
import { boxProcess } from '../support/process.ts'
import { killsOr } from '../support/kills.ts'

const kills = killsOr(3)
const messages = 120

test(`killed ${kills} times while it sends, every message arrives, and each time with the same octets`, async () => {
  const sink = await MailSink.start()
  const { box, send, inside } = await sendingBox(sink.port)
  box.dns.mx('far.test', 'mx.far.test').a('mx.far.test', '127.0.0.1')
  await inside().queue.stop()
  const ids = []
  for (let number = 0; number < messages; number++) ids.push(await send(`bob${number}@far.test`))
  await box.app.stop()
  sink.script = (line, guest) => {
    if (line !== '<end>') return undefined
    // a while between the last octet and the 250, and then one until that is on disk
    return Math.random() < 0.5 ? undefined : (void sleep(30).then(() => guest.write('250 2.0.0 Ok\r\n')), null)
  }
  const landed = (): number => sink.messages.length + sink.rejected.length
  for (let kill = 0; kill < kills; kill++) {
    const before = landed()
    const child = boxProcess(box.env, ['serve'], box.directory)
    await vi.waitFor(() => expect(landed()).toBeGreaterThan(before + 10), { timeout: 100_000, interval: 5 })
    await child.end('SIGKILL')
  }
  const last = boxProcess(box.env, ['serve'], box.directory)
  const database = openStore(join(box.directory, 'data', 'pillarbox.db'), { readOnly: true })
  const statuses = database.prepare('SELECT status, count(*) AS n FROM email_recipients GROUP BY status')
  await vi.waitFor(() => expect(statuses.all()).toMatchObject([{ status: 'delivered', n: messages }]), {
    timeout: 60_000,
    interval: 100,
  })
  database.close()
  expect(await last.end('SIGTERM')).toBe(0)
  const copies = Map.groupBy(
    [...sink.messages.map(({ raw }) => raw), ...sink.rejected],
    (raw) => /^Message-ID: (.*)$/m.exec(raw)?.[1],
  )
  expect(copies.size).toBe(messages)
  expect([...copies.values()].filter((raws) => new Set(raws).size > 1)).toEqual([])
  // at most what was on its way at each kill is sent once more
  expect(landed()).toBeLessThanOrEqual(messages + kills * 20)
})
