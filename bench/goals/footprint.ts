import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type Bench, finding, type Finding } from '../finding.ts'
import { boxSide, startIngestBox } from '../ingest.ts'
import { attachmentMail, type Prepared, realMail } from '../messages.ts'
import { usageOf } from '../process-tree.ts'

/** Memory of an idle box (P17) and disk per octet received (P19). */
export const footprint: Bench = {
  name: 'footprint',
  goals: ['P17', 'P19'],
  async run({ directory, scale }) {
    const idle = await idleMemory(join(directory, 'idle'))
    const real = await stored(join(directory, 'real'), await realMail(directory), Math.round(2000 * scale))
    const large = await stored(join(directory, 'large'), await attachmentMail(directory), Math.round(200 * scale))
    const memory = finding({
      goal: 'P17',
      what: 'Memory of an idle box, 5 s after its start',
      against: '–',
      value: idle,
      most: 160,
      unit: 'MB',
      figures: [`resident ${idle.toFixed(0)} MB`],
    })
    return [memory, disk('signed 4 KB', real, 2), disk('177 KB with an attachment', large, 1.1)]
  },
}

async function idleMemory(directory: string): Promise<number> {
  const box = await startIngestBox(directory, { message: { size: 0 }, sessions: 1, messages: 1 }, 0)
  await pause(5000)
  const { resident } = usageOf(box.pid)
  await box.stop()
  return resident
}

interface Stored {
  received: number
  kept: number
}

/** The growth of the data directory of a box that was stopped, so that all is in the database file. */
async function stored(directory: string, mail: Prepared, messages: number): Promise<Stored> {
  const work = { message: { file: mail.file }, sessions: 10, messages }
  const data = join(directory, 'data')
  const box = await startIngestBox(directory, work, 0)
  // with its identities made and nothing received
  const empty = sizeOf(data)
  await boxSide(box, work).round(0)
  await box.stop()
  return { received: mail.size * messages, kept: sizeOf(data) - empty }
}

function sizeOf(directory: string): number {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0)
}

function disk(what: string, { received, kept }: Stored, most: number): Finding {
  return finding({
    goal: 'P19',
    what: `Octets on disk per octet received, ${what}`,
    against: '–',
    value: kept / received,
    most,
    figures: [`${mega(kept)} MB kept of ${mega(received)} MB received, raw message, index and events`],
  })
}

function mega(octets: number): string {
  return (octets / 1e6).toFixed(1)
}
