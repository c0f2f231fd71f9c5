import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { folder } from '../support/folder.ts'
import { card } from '../support/card.ts'
import { succeed } from '../support/program.ts'
import { settled, stored } from './settled.ts'

const page = readFileSync(new URL('../../docs/vault.md', import.meta.url), 'utf8')
const examples = [...page.matchAll(/^```typescript\n(.*?)^```$/gms)].map(([, code]) => code!)

const details = { number: '4242424242424242', exp_month: 8, exp_year: 2039, cvc: '123', holder: 'José Ångström' }

test('what the page says encrypts a card is stored, revealed, and read again by its key alone', async () => {
  expect(examples).toHaveLength(1)
  const file = join(folder(), 'card.ts')
  writeFileSync(file, examples[0]!)
  const run = async (call: string): Promise<unknown> => {
    const program = `import { encrypt, decrypt } from ${JSON.stringify(pathToFileURL(file).href)}; console.log(JSON.stringify(${call}))`
    return JSON.parse((await succeed(process.execPath, ['--input-type=module', '-e', program])).toString()) as unknown
  }
  const cardKey = key(randomBytes(32))

  const world = await settled()
  const encrypted_data = (await run(`encrypt(${cardKey}, ${JSON.stringify(details)})`)) as string
  const path = await stored(world, { encrypted_data })
  const { body } = await world.box.call('POST', `${path}/reveal`, { amount_cents: 100 })
  const revealed = JSON.stringify(body['encrypted_data'])
  expect(await run(`decrypt(${cardKey}, ${revealed})`)).toEqual(details)
  await expect(run(`decrypt(${key(randomBytes(32))}, ${revealed})`)).rejects.toThrow('unable to authenticate')

  const forgotten = card({ encrypted_data: Buffer.from(JSON.stringify(details)).toString('base64') })
  expect((await world.box.call('POST', world.at, forgotten)).body.error.code).toBe('not_encrypted')
})

function key(bytes: Buffer): string {
  return `Buffer.from('${bytes.toString('hex')}', 'hex')`
}
