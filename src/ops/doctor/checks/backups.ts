import { day } from '../../../core/clock.ts'
import { masterKeySource } from '../../../core/service-unit.ts'
import { about, newCheck, type Check, reasonOf, spell } from '../check.ts'
import type { BoxContext } from '../context.ts'

/** Checks that there is a recent backup, and that it can be restored without another file. */
export function backups({ settings, newestBackup, now, state }: BoxContext): Check {
  const { directory } = settings.backup
  return newCheck('backup', 'usual', async () => {
    const line = about('backup', directory ?? 'settings')
    const make = 'pillarbox backup --auto\nEvery night: systemctl enable --now pillarbox-backup.timer'
    if (directory === undefined) {
      return [
        line.warn(
          'No backup directory is configured.',
          'Set backup.directory, then: systemctl reload pillarbox && pillarbox backup --auto',
        ),
      ]
    }
    try {
      const last = await newestBackup(settings.backup)
      if (!last) {
        const young = now() - Date.parse(state.data.created_at) < 2 * day
        return [line.of(young ? 'warn' : 'fail', young ? 'There is no backup yet.' : 'There is no backup.', make)]
      }
      const age = now() - Date.parse(last.created_at)
      if (age > 2 * day) return [line.of(age > 7 * day ? 'fail' : 'warn', `${last.name} is ${spell(age)} old.`, make)]
      if (last.keys) return [line.pass(`${last.name} is ${spell(Math.max(0, age))} old.`)]
      const fix = `Set backup.passphrase_file, or keep a copy of ${masterKeySource(settings)} in another safe place.`
      return [line.warn(`${last.name} contains no keys: encrypted data cannot be restored from it alone.`, fix)]
    } catch (error) {
      return [
        line.fail(reasonOf(error), 'Create the directory, writable by the user that runs the box, or change backup.directory.'),
      ]
    }
  })
}
