import { execFile } from 'node:child_process'
import { about, newCheck, type Check, reasonOf, spell } from '../check.ts'
import type { DoctorTest, OuterContext } from '../context.ts'
import type { Line } from '../model.ts'

type Run = NonNullable<DoctorTest['run']>

/** The clock error in milliseconds that is told, and at which codes, signatures and certificates fail. */
export const clockLimits = { noticeable: 5000, harmful: 30_000 }

/** Checks the clock of the box. */
export function clock({ now, newest, elsewhere, settings, testing }: OuterContext): Check {
  return newCheck('clock', 'usual', async () => {
    const last = await newest?.()
    if (last !== undefined && last - now() > clockLimits.harmful) {
      const message = `It was set back: the box has stored events ${spell(last - now())} in the future.`
      return [about('clock', 'now').fail(message, mend)]
    }
    return [elsewhere ? await compared(elsewhere, now, settings.time_url!) : await kept(testing?.run ?? program)]
  })
}

export const mend = 'apt-get install -y chrony\nWhere systemd-timesyncd is installed: timedatectl set-ntp true'

async function compared(elsewhere: () => Promise<number>, now: () => number, source: string): Promise<Line> {
  const line = about('clock', 'now')
  try {
    const there = await elsewhere()
    const off = now() - there
    const much = `It is ${(Math.abs(off) / 1000).toFixed(1)} s ${off > 0 ? 'ahead of' : 'behind'} ${source}`
    if (Math.abs(off) > clockLimits.harmful) return line.fail(`${much}: one-time codes and signatures fail.`, mend)
    if (Math.abs(off) > clockLimits.noticeable) return line.warn(`${much}.`, mend)
    return line.pass(`It agrees with ${source}.`)
  } catch (error) {
    return line.warn(
      `The time could not be read from ${source}: ${reasonOf(error)}`,
      'Set doctor.time_url to a URL that answers.',
    )
  }
}

async function kept(run: Run): Promise<Line> {
  const line = about('clock', 'now')
  const timedatectl = await run('timedatectl', ['show', '--property=NTPSynchronized', '--value']).catch(() => '')
  if (timedatectl.trim() === 'yes') return line.pass('It is synchronized by the system.')
  const chrony = await run('chronyc', ['-n', 'tracking']).catch(() => '')
  if (/^Leap status\s*: Normal$/m.test(chrony)) return line.pass('It is synchronized by chrony.')
  if (timedatectl.trim() === 'no' || chrony !== '') return line.warn('It is not synchronized (no NTP).', mend)
  return line.warn(
    'Its synchronization could not be determined.',
    'Set doctor.time_url to a URL with a reliable Date header, such as https://www.example.com.',
  )
}

const program: Run = (name, parameters) =>
  new Promise((resolve, reject) => {
    execFile(name, parameters, { timeout: 3000, env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' } }, (error, output) =>
      error ? reject(error) : resolve(output),
    )
  })
