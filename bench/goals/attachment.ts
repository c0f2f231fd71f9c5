import { join } from 'node:path'
import { type Bench, finding } from '../finding.ts'
import { boxSide, postfixSide, startIngestBox } from '../ingest.ts'
import { inTurn, shown, spreadOf } from '../measure.ts'
import { attachmentMail } from '../messages.ts'
import { startPostfix } from '../peers/postfix.ts'

/** A signed message of 177 KB with an attachment over 10 open connections: P4. */
export const attachment: Bench = {
  name: 'attachment',
  goals: ['P4'],
  async run({ directory, rounds, scale }) {
    const { file, size } = await attachmentMail(directory)
    const work = { message: { file }, sessions: 10, messages: Math.round(600 * scale) }
    const postfix = await startPostfix(join(directory, 'postfix'))
    const box = await startIngestBox(join(directory, 'box'), work, rounds)
    try {
      const samples = await inTurn([boxSide(box, work), postfixSide(postfix, work)], rounds)
      const of = (side: string, name: string) => spreadOf(samples.get(side), name)
      const [rate, accepted, delivered] = [of('box', 'msg/s'), of('Postfix', 'msg/s'), of('Postfix', 'msg/s delivered')]
      return [
        finding({
          goal: 'P4',
          what: `Durable ingest, ${Math.round(size / 1000)} KB with an attachment, signature verified, 10 sessions`,
          against: 'Postfix to maildir, checking nothing',
          value: rate.median / accepted.median,
          least: 1,
          figures: [
            `box ${shown(rate)} msg/s, ${shown(of('box', 'µs CPU/msg'))} µs CPU a message`,
            `Postfix ${shown(accepted)} msg/s accepted, ${shown(delivered)} msg/s until all is in the maildir, ${shown(of('Postfix', 'µs CPU/msg'))} µs CPU a message`,
          ],
        }),
      ]
    } finally {
      await box.stop()
      postfix.stop()
    }
  },
}
