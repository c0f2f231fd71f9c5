import { join } from 'node:path'
import { openStore } from '../../support/open-store.ts'
import { HeldClock } from '../../support/held-clock.ts'
import { appliance, type Appliance, deliver, message } from '../../support/appliance.ts'

export const day = 86_400_000

/** A box whose clock is held, with an identity that has a number, and what tests of retention ask of both. */
export interface Kept {
  box: Appliance
  clock: HeldClock
  ada: { id: string; email: string; phone_number: string }
  /** `/v1/identities/<ada>` */
  at: string
  /** Does what is done at times. */
  job: (name: string) => Promise<void>
  /** What a query finds in the file. */
  rows: (query: string) => Record<string, unknown>[]
  /** Delivers a message to Ada; answers its id. */
  mail: (subject: string, body?: string) => Promise<string>
}

export async function kept(env: Record<string, string> = {}): Promise<Kept> {
  const clock = new HeldClock()
  const box = await appliance(env, clock)
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada', provision_phone: true })
  const at = `/v1/identities/${ada.id}`
  const file = join(box.directory, 'data', 'pillarbox.db')
  return {
    box,
    clock,
    ada: { id: ada.id as string, email: ada['email'] as string, phone_number: ada['phone_number'] as string },
    at,
    job: async (name) => {
      const job = box.app.jobs.find((one) => one.name === name)
      if (!job) throw new Error(`There is no job ${name}.`)
      await job.run()
    },
    rows: (query) => {
      const database = openStore(file, { readOnly: true, timeout: 60_000 })
      try {
        return database.prepare(query).all()
      } finally {
        database.close()
      }
    },
    mail: async (subject, body = 'Hello\n') => {
      // no two alike within a day: a repeat would be hidden
      clock.advance(1)
      const raw = message(
        { Subject: subject, 'Message-ID': `<${subject.replaceAll(/\W/g, '')}-${clock.now()}@sender.test>` },
        body,
      )
      const reply = await deliver(box.smtp, { to: ada['email'] as string, raw })
      if (!reply.startsWith('250')) throw new Error(`The message was refused: ${reply}`)
      const { body: list } = await box.call('GET', `${at}/emails?limit=1`)
      return list.data[0].id as string
    },
  }
}
