import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeEach, describe, expect, it } from 'vitest'
import { type State, StateFile } from '../../src/store/state.ts'
import { child } from '../support/child.ts'
import { folder } from '../support/folder.ts'

const created_at = '2026-11-20T10:05:00.000Z'
const fresh = (): State => ({
  version: 1,
  box_id: 'box 0',
  created_at,
  database_created: false,
  first_key_shown: false,
  accounts: [{ id: 'acct_1', name: 'Operator', created_at }],
})

describe('state.json', () => {
  let file: string
  beforeEach(async () => {
    file = join(folder(), 'state.json')
    await StateFile.open(file, fresh)
  })

  it('is made once, for its owner only', async () => {
    expect(statSync(file).mode & 0o777).toBe(0o600)
    const state = await StateFile.open(file, () => {
      throw new Error('must not be asked')
    })
    expect(state.data).toEqual(fresh())
  })

  it('keeps every change on disk, and the document before it beside it', async () => {
    const state = await StateFile.open(file, fresh)
    await state.update((document) => void (document.database_created = true))
    expect((JSON.parse(readFileSync(file, 'utf8')) as State).database_created).toBe(true)
    expect((JSON.parse(readFileSync(`${file}.previous`, 'utf8')) as State).database_created).toBe(false)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(statSync(`${file}.previous`).mode & 0o777).toBe(0o600)
    expect((await StateFile.open(file, fresh)).data.database_created).toBe(true)
  })

  it('keeps all of the changes made at the same time', async () => {
    const state = await StateFile.open(file, fresh)
    const names = Array.from({ length: 30 }, (_, index) => `account ${index}`)
    await Promise.all(
      names.map((name) => state.update((document) => void document.accounts.push({ id: name, name, created_at }))),
    )
    const again = await StateFile.open(file, fresh)
    expect(again.data.accounts.slice(1).map((account) => account.name)).toEqual(names)
  })

  it('stays as it is when a change throws or makes no sense, and takes the next one', async () => {
    const state = await StateFile.open(file, fresh)
    const before = readFileSync(file, 'utf8')
    const failing = state.update((document) => {
      document.box_id = 'half'
      throw new Error('changed my mind')
    })
    await expect(failing).rejects.toThrow('changed my mind')
    await expect(state.update((document) => void (document.accounts = []))).rejects.toThrow('accounts')
    expect(readFileSync(file, 'utf8')).toBe(before)
    expect(state.data).toEqual(fresh())
    await state.update((document) => void (document.box_id = 'box 1'))
    expect(state.data.box_id).toBe('box 1')
  })

  const whole = JSON.stringify(fresh())
  const damages: [string, string | Buffer, RegExp][] = [
    ['null', 'null', /is damaged: the document/],
    ['a list', '[]', /is damaged: the document/],
    ['a number', '0', /is damaged: the document/],
    ['an empty file', '', /is damaged: it is not JSON/],
    ['NULs', Buffer.alloc(300), /is damaged: it is not JSON/],
    ['a byte order mark', `\uFEFF${whole}`, /is damaged: it is not JSON/],
    ['half of it', whole.slice(0, 60), /is damaged: it is not JSON/],
    ['a wrong version', whole.replace('"version":1', '"version":"one"'), /is damaged: version/],
    ['a newer version', JSON.stringify({ version: 2, whatever: true }), /newer Pillarbox \(version 2, this one knows 1\)/],
    ['a field too many', JSON.stringify({ ...fresh(), colour: 'red' }), /is damaged: .*colour/],
    ['no account', JSON.stringify({ ...fresh(), accounts: [] }), /is damaged: accounts/],
  ]
  it.each(damages)('is refused with a sentence, and left alone, when it holds %s', async (_name, content, sentence) => {
    writeFileSync(file, content)
    const opening = StateFile.open(file, fresh)
    await expect(opening).rejects.toThrow(sentence)
    await expect(opening).rejects.toThrow(file)
    await expect(opening).rejects.toThrow(/Restore .*previous|Run the newer program/)
    expect(readFileSync(file)).toEqual(Buffer.from(content))
    expect(existsSync(`${file}.previous`)).toBe(false)
  })

  it('is not made anew when only the document before it is left', async () => {
    const state = await StateFile.open(file, fresh)
    await state.update((document) => void (document.box_id = 'box 1'))
    rmSync(file)
    await expect(StateFile.open(file, fresh)).rejects.toThrow(
      /state\.json is missing, although .*previous exists\. Restore that file/,
    )
    expect(existsSync(file)).toBe(false)
  })

  it('is whole, with all that was told, when the process is killed at any moment', async () => {
    for (let round = 0; round < 10; round++) {
      const running = child('store/children/count-up.ts', [file])
      await running.until(1 + round)
      await sleep(Math.random() * 20)
      await running.kill()
      const told = Number(running.lines().at(-1)!.slice(4))
      const state = await StateFile.open(file, () => {
        throw new Error('must not be asked')
      })
      expect(Number(state.data.box_id.slice(4))).toBeGreaterThanOrEqual(told)
      const left = readdirSync(dirname(file)).toSorted()
      expect(left.filter((name) => name !== 'state.json.previous')).toEqual(['state.json'])
    }
  })
})
