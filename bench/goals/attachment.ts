import { join } from 'node:path'
import { type Bench, finding } from '../finding.ts'
import { boxSide, coldRounds, postfixSide, startIngestBox } from '../ingest.ts'
import { figure, inTurn, shown, spreadOf, warmUp } from '../measure.ts'
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
    const box = await startIngestBox(join(directory, 'box'), work, coldRounds(work) + rounds)
    try {
      const sides = [boxSide(box, work), postfixSide(postfix, work)]
      const cold = await warmUp(sides[0]!, coldRounds(work))
      const samples = await inTurn(sides, rounds, coldRounds(work))
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
            `box ${shown(rate)} msg/s, ${shown(of('box', 'µs CPU/msg'))} µs CPU a message, ${figure(cold['µs CPU/msg']!)} in the first round after its start`,
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
