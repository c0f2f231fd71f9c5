import { join } from 'node:path'
import { type Bench, finding, type Finding } from '../finding.ts'
import { boxSide, coldRounds, harakaSide, postfixSide, startIngestBox } from '../ingest.ts'
import { figure, inTurn, type Sample, shown, spreadOf, warmUp } from '../measure.ts'
import { startExim } from '../peers/exim.ts'
import { installHaraka, startHaraka } from '../peers/haraka.ts'
import { serverFigures, serverSide, startThose } from '../peers/mail-server.ts'
import { startMox } from '../peers/mox.ts'
import { startOpenSmtpd } from '../peers/opensmtpd.ts'
import { startPostfix } from '../peers/postfix.ts'

/** Plain mail of 4 KB over 50 open connections: P1, P2, the first half of P5, and the box's memory meanwhile (P17). Other mail servers get the same beside them. */
export const plain: Bench = {
  name: 'plain',
  goals: ['P1', 'P2', 'P5', 'P17'],
  async run({ directory, rounds, scale }) {
    const work = { message: { size: 4096 }, sessions: 50, messages: Math.round(4000 * scale) }
    const postfix = await startPostfix(join(directory, 'postfix'))
    const haraka = installHaraka() ? await startHaraka(join(directory, 'haraka')) : undefined
    const others = await startThose({
      Exim: () => startExim(join(directory, 'exim')),
      OpenSMTPD: () => startOpenSmtpd(join(directory, 'opensmtpd')),
      mox: () => startMox(join(directory, 'mox'), work, rounds),
    })
    const box = await startIngestBox(join(directory, 'box'), work, coldRounds(work) + rounds)
    try {
      const peers = [postfixSide(postfix, work), ...(haraka ? [harakaSide(haraka, work)] : [])]
      const sides = [boxSide(box, work), ...peers, ...others.map((server) => serverSide(server, work))]
      const cold = await warmUp(sides[0]!, coldRounds(work))
      const samples = await inTurn(sides, rounds, coldRounds(work))
      return findings(cold, samples, serverFigures(others, samples, work))
    } finally {
      await Promise.all(others.map((server) => server.stop()))
      await box.stop()
      haraka?.stop()
      postfix.stop()
    }
  },
}

function findings(cold: Sample, samples: Map<string, Sample[]>, others: string[]): Finding[] {
  const of = (side: string, name: string) => spreadOf(samples.get(side), name)
  const rate = of('box', 'msg/s')
  const [accepted, delivered] = [of('Postfix', 'msg/s'), of('Postfix', 'msg/s delivered')]
  const [own, theirs] = [of('box', 'µs CPU/msg'), of('Postfix', 'µs CPU/msg')]
  const peak = of('box', 'MB peak')
  const ours = `box ${shown(rate)} msg/s`
  const memory = finding({
    goal: 'P17',
    what: 'Memory under P1, peak of the process',
    against: '–',
    value: peak.max,
    most: 320,
    unit: 'MB',
    figures: [`peak ${shown(peak)} MB`],
  })
  const found = [
    finding({
      goal: 'P1',
      what: 'Durable ingest, whole pipeline, 4 KB plain, 50 sessions',
      against: 'Postfix to maildir',
      value: rate.median / accepted.median,
      least: 4,
      figures: [
        ours,
        `Postfix ${shown(accepted)} msg/s accepted, ${shown(delivered)} msg/s until all is in the maildir`,
        ...others,
      ],
    }),
    finding({
      goal: 'P5',
      what: 'CPU per message, 4 KB plain',
      against: 'Postfix to maildir',
      value: own.median / theirs.median,
      most: 0.2,
      figures: [
        `box ${shown(own)} µs, ${figure(cold['µs CPU/msg']!)} in the first round after its start`,
        `Postfix ${shown(theirs)} µs`,
      ],
    }),
    memory,
  ]
  if (!samples.has('Haraka')) return found
  const haraka = of('Haraka', 'msg/s')
  const against = finding({
    goal: 'P2',
    what: 'The same',
    against: 'Haraka, file and fsync, no parsing, no checks',
    value: rate.median / haraka.median,
    least: 1.5,
    figures: [ours, `Haraka ${shown(haraka)} msg/s, ${shown(of('Haraka', 'µs CPU/msg'))} µs CPU a message`],
  })
  return [found[0]!, against, ...found.slice(1)]
}
