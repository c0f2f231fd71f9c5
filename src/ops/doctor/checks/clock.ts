import { execFile } from 'node:child_process'
import { about, type Check, reasonOf, spell } from '../check.ts'
import type { Line } from '../model.ts'

/** Runs a program; answers what it printed, or rejects. */
export type Run = (program: string, parameters: string[]) => Promise<string>

interface Deps {
  now: () => number
  /** When the newest thing that the box knows of happened, in milliseconds; undefined when nothing has. */
  newest?: (() => Promise<number | undefined>) | undefined
  /** The time that a server says it is, in milliseconds; without one the machine is asked whether it keeps its clock right. */
  elsewhere?: (() => Promise<number>) | undefined
  /** Where that server is. */
  source: string | undefined
  run?: Run | undefined
}

/** Codes, signatures and certificates live by the clock; so many milliseconds off they fail. */
const harmful = 30_000
const noticeable = 5000

/** Whether it is as late as the box believes. */
export function clock({ now, newest, elsewhere, source, run = program }: Deps): Check {
  return {
    name: 'clock',
    pace: 'usual',
    async run() {
      const last = await newest?.()
      if (last !== undefined && last - now() > harmful) {
        const message = `It went back: the box has kept what happened ${spell(last - now())} from now.`
        return [about('clock', 'now').fail(message, mend)]
      }
      return [elsewhere ? await compared(elsewhere, now, source ?? '') : await kept(run)]
    },
  }
}

const mend = 'apt-get install -y chrony\nWhere systemd-timesyncd is installed: timedatectl set-ntp true'

async function compared(elsewhere: () => Promise<number>, now: () => number, source: string): Promise<Line> {
  const line = about('clock', 'now')
  try {
    const there = await elsewhere()
    const off = now() - there
    const much = `It is ${(Math.abs(off) / 1000).toFixed(1)} s ${off > 0 ? 'ahead of' : 'behind'} ${source}`
    if (Math.abs(off) > harmful) return line.fail(`${much}: one-time codes and signatures fail.`, mend)
    if (Math.abs(off) > noticeable) return line.warn(`${much}.`, mend)
    return line.pass(`It agrees with ${source}.`)
  } catch (error) {
    return line.warn(`${source} did not say how late it is: ${reasonOf(error)}`, 'Set doctor.time_url to a URL that answers.')
  }
}

async function kept(run: Run): Promise<Line> {
  const line = about('clock', 'now')
  const timedatectl = await run('timedatectl', ['show', '--property=NTPSynchronized', '--value']).catch(() => '')
  if (timedatectl.trim() === 'yes') return line.pass('The system keeps it right.')
  const chrony = await run('chronyc', ['-n', 'tracking']).catch(() => '')
  if (/^Leap status\s*: Normal$/m.test(chrony)) return line.pass('chrony keeps it right.')
  if (timedatectl.trim() === 'no' || chrony !== '') return line.warn('Nothing keeps it right (no NTP synchronization).', mend)
  return line.warn(
    'Nobody on this machine says whether it is right.',
    'Set doctor.time_url to a URL whose Date may be believed, such as https://www.example.com.',
  )
}

const program: Run = (name, parameters) =>
  new Promise((resolve, reject) => {
    execFile(name, parameters, { timeout: 3000, env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' } }, (error, output) =>
      error ? reject(error) : resolve(output),
    )
  })
