import { expect, test } from 'vitest'
import { appliance, type Appliance } from '../support/appliance.ts'
import { folder } from '../support/folder.ts'
import { boxProcess, testBox } from '../support/process.ts'
import { run } from '../support/program.ts'

const program = new URL('../../src/main.ts', import.meta.url).pathname

async function ready(
  env: Record<string, string>,
  ...words: string[]
): Promise<{ status: number | null; output: string; errors: string }> {
  const { code, output, errors } = await run(process.execPath, [program, 'ready', ...words], { env, cwd: folder() })
  return { status: code, output: output.toString(), errors }
}

const place = ({ env }: Appliance): Record<string, string> => ({ PILLARBOX_DATA_DIR: env['PILLARBOX_DATA_DIR']! })

test('a box that runs is ready, and one that was stopped is not', async () => {
  const box = await appliance()
  expect(await ready(place(box))).toMatchObject({ status: 0, output: 'The box is ready.\n', errors: '' })
  await box.app.stop()
  expect(await ready(place(box))).toMatchObject({
    status: 1,
    output: '',
    errors: expect.stringMatching(/^No running box answers at /),
  })
})

test('a box that lacks room on its disk counts as up, so that no service manager ends it, and says what is wrong', async () => {
  const box = await appliance({ PILLARBOX_MIN_FREE: '900 TiB' })
  const message = 'The box is up, but rejects new data: the disk is nearly full.\n'
  expect(await ready(place(box), '--wait', '60')).toEqual({ status: 0, output: message, errors: '' })
})

test('it waits for a box that is still starting', async () => {
  const data = folder()
  const waiting = ready({}, '--data', data, '--wait', '60', '--json')
  boxProcess({ ...testBox, PILLARBOX_DATA_DIR: data })
  const { status, output } = await waiting
  expect([status, JSON.parse(output)]).toEqual([0, { ready: true, failing: [] }])
})

test('it does not wait for a box of which the service manager says that its process has ended', async () => {
  const box = boxProcess({ PILLARBOX_DATA_DIR: folder(), PILLARBOX_HTTP__LISTEN: 'nowhere' })
  expect(await box.ended).toBe(78)
  expect(await ready({ MAINPID: String(box.child.pid) }, '--data', folder(), '--wait', '3')).toMatchObject({
    status: 1,
    errors: `The box has exited (process ${box.child.pid}); see its log: journalctl -u pillarbox\n`,
  })
})

test('a time that is none is a wrong command line', async () => {
  expect(await ready({}, '--data', folder(), '--wait', 'soon')).toMatchObject({
    status: 2,
    errors: "error: option '--wait <seconds>' argument 'soon' is invalid. It must be a whole number from 0 to 86400.\n",
  })
})
