import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import type { Appliance } from '../../support/appliance.ts'
import { boxProcess } from '../../support/process.ts'
import { bigBox } from './big-box.ts'
import { pillarbox } from './command.ts'
import { killsOr } from '../../support/kills.ts'

const kills = killsOr(2)

/** Begins a command, and ends it somewhere after this file is there. */
async function cutOff(box: Appliance, words: string[], begun: string, signal: NodeJS.Signals, within = 400): Promise<string> {
  const running = boxProcess(box.env, words, box.directory)
  await vi.waitFor(() => expect(existsSync(begun)).toBe(true), { timeout: 100_000, interval: 2 })
  await sleep(Math.random() * within)
  await running.end(signal)
  return running.errors()
}

test(`killed ${2 * kills} times in the middle, a backup is whole or not there, and nothing is left of it`, async () => {
  const box = await bigBox(48)
  const target = join(box.directory, 'shelf')
  mkdirSync(target)
  const file = join(target, 'box.tar')
  let cut = 0
  for (let kill = 0; kill < 2 * kills; kill += 1) {
    const gentle = kill % 2 === 1
    const errors = await cutOff(box, ['backup', file, '--force'], `${file}.part.db`, gentle ? 'SIGTERM' : 'SIGKILL')
    if (gentle && errors.includes('Interrupted')) expect(errors).toMatch(/^Interrupted\. Partial files were removed\.$/m)
    // the process that writes ends with the one that asked it to
    await vi.waitFor(() => expect(readdirSync(target).filter((name) => name !== 'box.tar')).toEqual([]), {
      timeout: 100_000,
      interval: 20,
    })
    if (existsSync(file)) expect(await pillarbox(box, 'verify', file)).toMatchObject({ status: 0 })
    else cut += 1
  }
  expect(cut).toBeGreaterThan(0)
  expect(await pillarbox(box, 'backup', file, '--force')).toMatchObject({ status: 0 })
  expect(await pillarbox(box, 'verify', file)).toMatchObject({ status: 0 })
}, 300_000)

test(`killed ${2 * kills} times in the middle, a box is restored or not there, and the next restore is not in its way`, async () => {
  const box = await bigBox(48)
  const file = join(box.directory, 'box.tar')
  expect(await pillarbox(box, 'backup', file)).toMatchObject({ status: 0 })
  const whole = ['pillarbox.db', 'state.json']
  const key = ['--master-key', join(box.directory, 'data-keys', 'master.key')]
  for (const there of [false, true]) {
    const data = join(box.directory, there ? 'there' : 'missing')
    const draft = there ? join(data, '.restoring') : `${data}.part`
    if (there) mkdirSync(data)
    for (let kill = 0; kill < kills; kill += 1) {
      const signal = kill === 0 ? 'SIGTERM' : 'SIGKILL'
      await cutOff(box, ['restore', file, '--data', data, ...key], draft, signal)
      if (signal === 'SIGTERM') expect(existsSync(draft)).toBe(false)
      if (existsSync(join(data, 'state.json'))) {
        // it was faster: whole, and not written over
        expect(
          readdirSync(data)
            .filter((name) => name !== '.restoring' && !name.startsWith('lock'))
            .toSorted(),
        ).toEqual(whole)
        const again = await pillarbox(box, 'restore', file, '--data', data, ...key)
        expect(again.errors).toMatch(/is not empty \(pillarbox\.db, state\.json\)/)
        for (const path of [data, `${data}-keys`]) rmSync(path, { recursive: true })
        if (there) mkdirSync(data)
      } else if (existsSync(join(data, 'pillarbox.db'))) {
        // no box begins to live in what is half done
        expect((await pillarbox(box, 'domain', 'list', '--data', data)).errors).toMatch(/There is no box/)
      }
    }
    expect(await pillarbox(box, 'restore', file, '--data', data, ...key)).toMatchObject({ status: 0, errors: '' })
    expect(
      readdirSync(data)
        .filter((name) => !name.startsWith('lock'))
        .toSorted(),
    ).toEqual(whole)
    expect(existsSync(`${data}.part`)).toBe(false)
  }
}, 300_000)
