import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { folder } from '../support/folder.ts'
import { pillarbox } from '../support/pillarbox.ts'

const page = readFileSync(new URL('../../docs/commands.md', import.meta.url), 'utf8')

test('docs/commands.md is what the commands say of themselves (npm run docs writes it)', async () => {
  const directory = folder()
  const file = join(directory, 'commands.md')
  expect(await pillarbox({ env: {}, directory }, ['docs', '--commands', file])).toMatchObject({ status: 0, errors: '' })
  expect(readFileSync(file, 'utf8')).toBe(page)
})

test('help asked of a command is what the page says', async () => {
  const { output } = await pillarbox({ env: {}, directory: folder() }, ['queue', 'drop', '--help'])
  const section = page.slice(page.indexOf('### pillarbox queue drop\n'))
  const said = section.slice(section.indexOf('```\n') + 4, section.indexOf('\n```\n', section.indexOf('```\n') + 4))
  // a terminal may be narrower
  expect(output.replaceAll(/\s+/g, ' ').trim()).toBe(said.replaceAll(/\s+/g, ' ').trim())
})
