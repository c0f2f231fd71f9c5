import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { release } from '../../test/support/release.ts'
import { version } from '../../src/version.ts'
import { startBox } from '../box.ts'
import { startNameServer } from '../dns.ts'
import { type Bench, finding } from '../finding.ts'
import { type Sample, shown, spreadOf } from '../measure.ts'
import { senderZone } from '../messages.ts'

/** The release as its user unpacks it (P22): how long that takes, how large it is, and how long until a box of it is ready, the first time and again. */
export const install: Bench = {
  name: 'install',
  goals: ['P22'],
  async run({ directory, rounds }) {
    const processor = process.arch === 'arm64' ? 'arm64' : 'x64'
    const name = `pillarbox-${version}-linux-${processor}`
    const tarball = join(await release(), `${name}.tar.gz`)
    mkdirSync(join(directory, 'dns'))
    const dns = await startNameServer(join(directory, 'dns'), senderZone)
    const samples: Sample[] = []
    let size = 0
    try {
      for (let round = 0; round < rounds; round++) {
        const place = join(directory, `opt-${round}`)
        mkdirSync(place)
        const began = performance.now()
        execFileSync('tar', ['-xzf', tarball, '-C', place])
        const unpacked = (performance.now() - began) / 1000
        const program = join(place, name)
        size = Number(execFileSync('du', ['--summarize', '--block-size=1', program], { encoding: 'utf8' }).split('\t')[0]) / 1e6
        const start = async (): Promise<number> => {
          const box = await startBox({
            directory: join(place, 'data'),
            dns: dns.address,
            program: join(program, 'bin/pillarbox'),
          })
          await box.stop()
          return box.started_in / 1000
        }
        samples.push({ 's install': unpacked, 's first': await start(), 's again': await start() })
        execFileSync('rm', ['-rf', place])
      }
    } finally {
      dns.stop()
    }
    const of = (what: string) => spreadOf(samples, `s ${what}`)
    const first = `${shown(of('first'))} s at the first start, which makes the keys and the database and compiles the program`
    return [
      finding({
        goal: 'P22',
        what: 'Installation from the tarball',
        against: '–',
        value: of('install').median,
        most: 10,
        unit: 's',
        figures: [`${shown(of('install'))} s`],
      }),
      finding({
        goal: 'P22',
        what: 'The installed program on the disk',
        against: '–',
        value: size,
        most: 250,
        unit: 'MB',
        figures: [`${size.toFixed(0)} MB`],
      }),
      finding({
        goal: 'P22',
        what: 'From the start of a box to its first answer',
        against: '–',
        value: of('again').median,
        most: 1,
        unit: 's',
        figures: [`${shown(of('again'))} s; ${first}`],
      }),
    ]
  },
}
