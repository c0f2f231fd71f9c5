import { day } from '../../../core/clock.ts'
import { masterKeySource } from '../../../core/service-unit.ts'
import { about, newCheck, type Check, reasonOf, spell } from '../check.ts'
import type { BoxContext } from '../context.ts'
import type { Line } from '../model.ts'
import { passesElsewhere } from '../stored-lines.ts'

const make = 'pillarbox backup --auto\nEvery night: systemctl enable --now pillarbox-backup.timer'

/** Checks that there is a recent backup, and that it can be restored without another file. That of one of several boxes is one of all. */
export function backups(context: BoxContext): Check {
  return newCheck('backup', 'usual', async () => {
    const line = await newest(context)
    return line.status !== 'pass' && (await passesElsewhere(context.database, 'backup', context.now())) ? [] : [line]
  })
}

async function newest({ settings, newestBackup, now, state }: BoxContext): Promise<Line> {
  const { directory } = settings.backup
  const line = about('backup', directory ?? 'settings')
  if (directory === undefined) {
    return line.warn(
      'No backup directory is configured.',
      'Set backup.directory, then: systemctl reload pillarbox && pillarbox backup --auto',
    )
  }
  try {
    const last = await newestBackup(settings.backup)
    if (!last) {
      const young = now() - Date.parse(state.data.created_at) < 2 * day
      return line.of(young ? 'warn' : 'fail', young ? 'There is no backup yet.' : 'There is no backup.', make)
    }
    const age = now() - Date.parse(last.created_at)
    if (age > 2 * day) return line.of(age > 7 * day ? 'fail' : 'warn', `${last.name} is ${spell(age)} old.`, make)
    if (last.keys) return line.pass(`${last.name} is ${spell(Math.max(0, age))} old.`)
    const fix = `Set backup.passphrase_file, or keep a copy of ${masterKeySource(settings)} in another safe place.`
    return line.warn(`${last.name} contains no keys: encrypted data cannot be restored from it alone.`, fix)
  } catch (error) {
    return line.fail(reasonOf(error), 'Create the directory, writable by the user that runs the box, or change backup.directory.')
  }
}
