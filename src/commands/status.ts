import type { Command } from 'commander'
import type { Status } from '../ops/status/model.ts'
import { ofBox, onBox } from './support/box.ts'
import { bytes, span } from './support/say.ts'

/** `pillarbox status`: exit status 1 when a component fails, or the box does not run. */
export function addStatusCommand(program: Command): void {
  const status = program.command('status').description('status of the box')
  ofBox(status).action(
    onBox(async (box) => {
      const now = await box.call<Status>('GET', '/v1/status')
      // a box opened for this command has no ports, and no uptime
      const failing = box.running ? now.failing : []
      if (!box.running || failing.length > 0) process.exitCode = 1
      return [{ running: box.running, ...now, failing }, formatStatus(now, failing, box.running)]
    }),
  )
}

function formatStatus(
  { version, uptime, sending, identities, queue, last_24_hours: day, disk }: Status,
  failing: string[],
  running: boolean,
): string {
  const state = !running ? 'not running' : failing.length > 0 ? `running, but ${lacking(failing)}` : 'runs'
  const since = running ? `, up ${span(uptime)}` : ''
  const heaps = queue.map(
    ({ kind, waiting, running: now, age }) => `${kind}: ${waiting} waiting, ${now} running, oldest ${span(age)}`,
  )
  const free = disk.free === null ? 'an unknown amount' : bytes(disk.free)
  const lines = [
    ['Pillarbox', `${version} ${state}${since}`],
    ['sending', sending.explanation],
    ['identities', String(identities)],
    [
      'mail, 24 h',
      `${day.emails_received} received; ${day.emails_delivered} copies delivered, ${day.emails_bounced} bounced, ${day.emails_failed} failed`,
    ],
    ['SMS, 24 h', `${day.sms_received} received; ${day.sms_sent} sent, ${day.sms_failed} failed`],
    ['queue', heaps.length === 0 ? 'empty' : heaps.join('\n            ')],
    [
      'disk',
      `${bytes(disk.database)} used by the database, ${free} free${disk.low ? `, less than min_free (${bytes(disk.min_free)})` : ''}`,
    ],
  ]
  return lines.map(([name, value]) => `${name!.padEnd(12)}${value}`).join('\n')
}

function lacking(failing: readonly string[]): string {
  const broken = failing.filter((what) => what !== 'space')
  const words = [
    ...(failing.includes('space') ? ['rejects new data: the disk is nearly full'] : []),
    ...(broken.length > 0 ? [`failing: ${broken.join(', ')}`] : []),
  ]
  return words.join(', and ')
}
