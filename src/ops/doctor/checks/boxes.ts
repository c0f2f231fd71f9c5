import type { BoxReport, KnownBox } from '../../../store/database.ts'
import { about, sharedCheck, type Check, spell } from '../check.ts'
import type { BoxContext } from '../context.ts'
import type { Line } from '../model.ts'
import { mend, clockLimits } from './clock.ts'

/** Milliseconds without a heartbeat (one is every 5 seconds), and in which its process did nothing, after which a box may hang. */
const unheard = 12_000
const late = 2000

/** Compares the boxes on the same database, where there may be some. */
export function otherBoxes({ database }: Pick<BoxContext, 'database'>): Check {
  return sharedCheck('boxes', 'often', async () => {
    if (!database.several) return []
    const known = await database.run.boxes()
    const boxes = known.filter((box) => !box.lost)
    return [others(boxes), ...lost(known), ...delayed(boxes), clocks(boxes), versions(boxes), ...settings(boxes)]
  })
}

function others(boxes: readonly KnownBox[]): Line {
  const line = about('boxes', 'others')
  const beside = boxes.filter(({ own }) => !own)
  if (beside.length === 0) return line.pass('No other box uses the database now.')
  const count = `${beside.length} other ${beside.length === 1 ? 'box uses' : 'boxes use'} the database`
  const oldest = beside.toSorted((one, other) => other.since - one.since)[0]!
  if (oldest.since < unheard)
    return line.pass(`${count}; the last heartbeat is at most ${spell(Math.max(oldest.since, 1000))} ago.`)
  return line.warn(
    `${count}; that of ${oldest.name} has not been heard for ${spell(oldest.since)}: it hangs, was killed, or cannot reach the database. After 30 seconds the others do its work.`,
    'Look at its log there (journalctl -u pillarbox), and start it again if it does not run.',
  )
}

function lost(known: readonly KnownBox[]): Line[] {
  return known
    .filter((box) => box.lost)
    .map(({ name, since }) =>
      about('boxes', name).warn(
        `It has not ended by itself, and was last seen ${spell(since)} ago: it was killed, hangs, or cannot reach the database. The others do its work.`,
        'Look at its log there (journalctl -u pillarbox), and start it again. If it is gone for good, nothing has to be done: this line ends after a day.',
      ),
    )
}

function delayed(boxes: readonly KnownBox[]): Line[] {
  return boxes.flatMap(({ name, delay }) =>
    delay === undefined || delay.length < late
      ? []
      : [
          about('boxes', name).warn(
            `It did nothing for at least ${spell(delay.length)}, ${spell(Math.max(delay.since, 1000))} ago: its event loop was held up.`,
            'Look whether its machine swaps, was suspended, or has too little CPU time. This line ends an hour after the last such delay.',
          ),
        ],
  )
}

function clocks(boxes: readonly KnownBox[]): Line {
  const line = about('boxes', 'clocks')
  const worst = boxes.toSorted((one, other) => Math.abs(other.ahead) - Math.abs(one.ahead))[0]
  const off = Math.abs(worst?.ahead ?? 0)
  if (!worst || off <= clockLimits.noticeable) return line.pass('The clocks of all boxes agree with that of the database server.')
  const where = `That of ${worst.name} is at least ${(off / 1000).toFixed(1)} s ${worst.ahead > 0 ? 'ahead of' : 'behind'} the clock of the database server`
  const fix = `On that machine, or where all boxes are off, on that of the database:\n${mend}`
  if (off > clockLimits.harmful) return line.fail(`${where}: what one box issues is too early or too late at others.`, fix)
  return line.warn(`${where}.`, fix)
}

function versions(boxes: readonly KnownBox[]): Line {
  const line = about('boxes', 'versions')
  const byVersion = Map.groupBy(told(boxes), ({ report }) => report.version)
  if (byVersion.size <= 1) return line.pass('All boxes have the same version.')
  const each = [...byVersion].map(([version, those]) => `${version} at ${those.map(({ name }) => name).join(', ')}`)
  return line.warn(
    `They differ: ${each.join('; ')}.`,
    'Stop all boxes, install the newest of these versions on each, and start them.',
  )
}

/** Each box whose settings differ from those of the first by name, so that all of them find the same. */
function settings(boxes: readonly KnownBox[]): Line[] {
  const [first, ...rest] = told(boxes).toSorted((one, other) => (one.name < other.name ? -1 : 1))
  if (!first) return []
  const lines = rest.flatMap(({ name, report }) => {
    const names = differing(first.report.settings, report.settings)
    if (names.length === 0) return []
    return [
      about('boxes', `settings of ${name}`).warn(
        `They differ from those of ${first.name}: ${names.join(', ')}.`,
        'Set the same at each box, and reload it (pillarbox reload), or restart it where the setting needs that (docs/settings.md).',
      ),
    ]
  })
  return lines.length > 0 ? lines : [about('boxes', 'settings').pass('The settings of all boxes agree.')]
}

function differing(one: BoxReport['settings'], other: BoxReport['settings']): string[] {
  return [...new Set([...Object.keys(one), ...Object.keys(other)])].filter((name) => one[name] !== other[name])
}

function told(boxes: readonly KnownBox[]): (KnownBox & { report: BoxReport })[] {
  return boxes.flatMap((box) => (box.report === undefined ? [] : [{ ...box, report: box.report }]))
}
