import { join } from 'node:path'
import { identityIds } from '../api.ts'
import type { Finding } from '../finding.ts'
import { startIngestBox } from '../ingest.ts'
import { send } from '../load/posts.ts'
import { figure } from '../measure.ts'
import { costOf, each, peakOf, told } from './cost.ts'

const identities = 10_000

/** So many identities, made and listed by the API. */
export async function manyIdentities(directory: string, scale: number): Promise<Finding[]> {
  const count = Math.round(identities * scale)
  const box = await startIngestBox(join(directory, 'box'), { message: { size: 0 }, sessions: 1, messages: 1 }, 0)
  try {
    const url = `${box.url}/v1/identities`
    const made = await costOf(box, () => send({ url, connections: 64, count, body: {} }))
    let listed: string[] = []
    const list = await costOf(box, async () => (listed = await identityIds(box)))
    // one was there before
    if (listed.length !== count + 1) throw new Error(`${listed.length} identities are listed of ${count + 1}.`)
    const all = count.toLocaleString('en')
    return [
      told('P31', `${all} identities made by the API over 64 connections`, (count / made.time) * 1000, 'a second', [
        `${figure(made.cpu / count)} ms CPU each`,
        peakOf(box),
      ]),
      told('P31', `All ${all} listed, 100 a call`, list.time / 1000, 's', [
        `${each(list, Math.ceil(listed.length / 100))} a call`,
        peakOf(box),
      ]),
    ]
  } finally {
    await box.stop()
  }
}
