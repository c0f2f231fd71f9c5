import { join } from 'node:path'
import { type Bench, finding } from '../finding.ts'
import { boxSide, coldRounds, postfixSide, startIngestBox } from '../ingest.ts'
import { figure, inTurn, shown, spreadOf, warmUp } from '../measure.ts'
import { realMail } from '../messages.ts'
import { serverFigures, serverSide, startThose } from '../peers/mail-server.ts'
import { startMox } from '../peers/mox.ts'
import { startPostfix } from '../peers/postfix.ts'

/** A signed HTML mail of 4 KB over 50 open connections: P3 and the second half of P5. mox, which checks the same, gets it beside them. */
export const real: Bench = {
  name: 'real',
  goals: ['P3', 'P5'],
  async run({ directory, rounds, scale }) {
    const { file, size } = await realMail(directory)
    const work = { message: { file }, sessions: 50, messages: Math.round(3000 * scale) }
    const postfix = await startPostfix(join(directory, 'postfix'))
    const others = await startThose({ mox: () => startMox(join(directory, 'mox'), work, rounds) })
    const box = await startIngestBox(join(directory, 'box'), work, coldRounds(work) + rounds)
    try {
      const sides = [boxSide(box, work), postfixSide(postfix, work), ...others.map((server) => serverSide(server, work))]
      const cold = await warmUp(sides[0]!, coldRounds(work))
      const samples = await inTurn(sides, rounds, coldRounds(work))
      const of = (side: string, name: string) => spreadOf(samples.get(side), name)
      const [rate, accepted, delivered] = [of('box', 'msg/s'), of('Postfix', 'msg/s'), of('Postfix', 'msg/s delivered')]
      const [own, theirs] = [of('box', 'µs CPU/msg'), of('Postfix', 'µs CPU/msg')]
      return [
        finding({
          goal: 'P3',
          what: `Durable ingest, DKIM-signed HTML mail of ${size} octets, signature verified, 50 sessions`,
          against: 'Postfix to maildir, checking nothing',
          value: rate.median / accepted.median,
          least: 1.5,
          figures: [
            `box ${shown(rate)} msg/s`,
            `Postfix ${shown(accepted)} msg/s accepted, ${shown(delivered)} msg/s until all is in the maildir`,
            ...serverFigures(others, samples, work),
          ],
        }),
        finding({
          goal: 'P5',
          what: 'CPU per message, signed 4 KB',
          against: 'Postfix to maildir',
          value: own.median / theirs.median,
          most: 0.5,
          figures: [
            `box ${shown(own)} µs, ${figure(cold['µs CPU/msg']!)} in the first round after its start`,
            `Postfix ${shown(theirs)} µs`,
          ],
        }),
      ]
    } finally {
      await Promise.all(others.map((server) => server.stop()))
      await box.stop()
      postfix.stop()
    }
  },
}
