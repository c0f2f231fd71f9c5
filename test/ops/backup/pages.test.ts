import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { printedWith } from '../../peers/bare-debian/printed.ts'
import { owner, stoppedBox, type StoppedBox } from '../../support/stopped-box.ts'
import { passphraseFile } from './command.ts'

// what the pages print for root beside a stopped box of another user
let box: StoppedBox
let passphrase: string

beforeAll(async () => {
  box = await stoppedBox()
  passphrase = passphraseFile(box.directory)
})
beforeEach(async () => {
  await box.reset()
  await box.shell('pillarbox identity create Ada')
})
afterAll(() => box.close())

/** A block of a page for this box: with its paths and its user. */
function commands(page: string, heading: string, part: string): string {
  const replaced: [string, string][] = [
    ['/etc/pillarbox/pillarbox.yaml', '/dev/null'],
    ['-o pillarbox -g pillarbox', `-o ${owner.uid} -g ${owner.gid}`],
    ['/var/backups/pillarbox', `${box.directory}/home`],
    ['/var/lib/pillarbox-keys', box.keys],
    ['/var/lib/pillarbox', box.data],
    ['/var/tmp/old', `${box.directory}/home/old`],
    ['restore box.tar', `restore ${box.directory}/home/box.tar`],
    ['FILE', passphrase],
  ]
  return replaced.reduce((text, [word, value]) => text.replaceAll(word, value), printedWith(page, heading, part).join('\n'))
}

/** The names of the identities, by the box that is there now, which belongs to its user altogether. */
async function identities(): Promise<string[]> {
  const { code, output, errors } = await box.command('root', 'identity', 'list', '--json')
  expect([code, errors]).toEqual([0, ''])
  await box.shell(`test -z "$(find ${box.data} ${box.keys} ! -user ${owner.uid})"`)
  return (JSON.parse(output) as { name: string }[]).map(({ name }) => name)
}

test('going back: root restores the backup from before, and the box belongs to its user', async () => {
  await box.shell(`pillarbox backup ${box.directory}/home/before.tar --passphrase-file ${passphrase}`)
  await box.shell('pillarbox identity create Bob')
  await box.shell(commands('docs/install.md', 'Going back', 'pillarbox restore'))
  expect(await identities()).toEqual(['Ada'])
})

test('a lost master key is taken from a backup, and the data stays', async () => {
  await box.shell(`pillarbox backup ${box.directory}/home/box.tar --passphrase-file ${passphrase}`)
  await box.shell(`pillarbox identity create Bob && rm ${box.keys}/master.key`)
  await box.shell(commands('docs/troubleshooting.md', 'The master key is lost', 'old-keys'))
  expect((await identities()).toSorted()).toEqual(['Ada', 'Bob'])
  await box.shell(`cmp ${box.keys}/master.key ${box.key} && test -z "$(ls -d ${box.directory}/home/old* 2>/dev/null)"`)
})

test('with the master key lost for good the data stays but for what it sealed', async () => {
  // an account of a CA is beside it
  await box.shell(`install -d -o ${owner.uid} ${box.keys}/acme && mv ${box.keys}/master.key ${box.directory}/home/lost.key`)
  expect((await box.command('root', 'identity', 'list')).errors).toContain('master.key is missing')
  await box.shell(commands('docs/troubleshooting.md', 'The master key is lost', '--without-keys'))
  expect(await identities()).toEqual(['Ada'])
  await box.shell(`! cmp -s ${box.keys}/master.key ${box.directory}/home/lost.key`)
})
