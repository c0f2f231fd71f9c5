import { stat } from 'node:fs/promises'
import type { Stats } from 'node:fs'
import { join } from 'node:path'
import { about, newCheck, type Check, quoted } from '../check.ts'
import type { OuterContext } from '../context.ts'
import type { Line } from '../model.ts'
import { owning } from '../remedies.ts'

interface Kept {
  path: string
  /** The forbidden mode bits, and the right mode. */
  forbidden: number
  right: string
  foreign?: boolean
}

/** Checks that only the box's user can read its files. */
export function permissions({ settings, present }: OuterContext): Check {
  const { data_dir, keys_dir, master_key_file, pairs } = settings
  const boxFiles = ['state.json', 'state.json.previous', 'pillarbox.db', 'pillarbox.db-wal', 'tls/key.pem']
  const lent = [...(master_key_file === undefined ? [] : [master_key_file]), ...new Set(pairs.map(({ key }) => key))]
  const groups: [subject: string, kept: Kept[]][] = [
    [data_dir, ours(data_dir, boxFiles)],
    [keys_dir, ours(keys_dir, master_key_file === undefined ? ['master.key', 'master.key.former'] : [])],
    // systemd grants the service access to credentials by an ACL, which appears as group bits
    ...lent.map((path): [string, Kept[]] => [path, [{ path, forbidden: 0o007, right: '640', foreign: true }]]),
  ]
  return newCheck('permissions', 'often', async () => {
    const lines = await Promise.all(groups.map(([subject, kept]) => look(subject, kept)))
    return [...lines.flat(), ...(present() ? asRoot() : [])]
  })
}

function ours(directory: string, names: string[]): Kept[] {
  return [
    { path: directory, forbidden: 0o077, right: '700' },
    ...names.map((name) => ({ path: join(directory, name), forbidden: 0o077, right: '600' })),
  ]
}

async function look(subject: string, kept: Kept[]): Promise<Line[]> {
  const line = about('permissions', subject)
  const fixes: string[] = []
  const wrong: string[] = []
  const me = process.geteuid?.() ?? 0
  let there = false
  for (const { path, forbidden, right, foreign } of kept) {
    const seen = await stat(path).catch(() => undefined)
    if (!seen) continue
    there = true
    if (seen.mode & forbidden) {
      wrong.push(`${path} can be ${readers(seen)} (mode ${(seen.mode & 0o777).toString(8)})`)
      fixes.push(`chmod ${right} ${quoted(path)}`)
    }
    if (!foreign && me !== 0 && seen.uid !== me) {
      wrong.push(`${path} belongs to user ${seen.uid}, and the box runs as ${me}`)
      fixes.push(owning([path]))
    }
  }
  if (!there) return []
  if (wrong.length === 0) return [line.pass('No other user can read it.')]
  return [line.fail(`${wrong.join('; ')}.`, fixes.join(' && '))]
}

function readers({ mode }: Stats): string {
  return mode & 0o007 ? 'used by everyone on this machine' : 'used by its group'
}

function asRoot(): Line[] {
  if (process.geteuid?.() !== 0) return []
  const message = 'The box runs as root: a vulnerability in it would affect the whole machine.'
  return [about('permissions', 'user').warn(message, 'Run it as a separate user: User=pillarbox in the systemd unit.')]
}
