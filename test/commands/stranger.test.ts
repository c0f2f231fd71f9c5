import { chmodSync, chownSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { folder } from '../support/folder.ts'
import { run } from '../support/program.ts'

const program = new URL('../../src/main.ts', import.meta.url).pathname
const nobody = 65_534

test('whoever may not look into a box is told that, and not that there is none', async () => {
  const data = join(folder(), 'data')
  mkdirSync(data, { mode: 0o700 })
  for (const name of ['state.json', 'pillarbox.db']) writeFileSync(join(data, name), '')
  chmodSync(dirname(data), 0o755)
  const root = process.getuid!() === 0
  if (!root) chmodSync(data, 0)
  const asked = (...words: string[]) => {
    const command = [program, ...words, '--data', data]
    const stranger = ['--reuid', String(nobody), '--regid', String(nobody), '--clear-groups', process.execPath, ...command]
    return root ? run('setpriv', stranger, { cwd: '/' }) : run(process.execPath, command, { cwd: '/' })
  }
  const sentence = `${data} may not be read by this user: run the command as root, or as the user that runs the box.\n`
  for (const words of [['status'], ['backup', '/nowhere/box.tar'], ['reputation', 'recount']])
    expect(await asked(...words)).toMatchObject({ code: 1, errors: sentence })
  const { output } = await asked('doctor', '--json')
  const { lines } = JSON.parse(output.toString()) as { lines: { name: string; message: string }[] }
  expect(lines.find(({ name }) => name === 'data')).toMatchObject({
    status: 'fail',
    message: 'This user may not read it: only checks from outside were made.',
    fix: 'As root: pillarbox doctor',
  })
  chmodSync(data, 0o700)
  chownSync(data, process.getuid!(), process.getgid!())
})
