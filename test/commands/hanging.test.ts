import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { pillarbox } from '../ops/backup/command.ts'
import { folder } from '../support/folder.ts'

test('a box that hangs does not keep a command waiting for ever', async () => {
  const data = folder()
  writeFileSync(join(data, 'state.json'), '{}')
  const hanging = createServer(() => undefined).listen(join(data, 'control.sock'))
  onTestFinished(() => void hanging.close())
  await once(hanging, 'listening')
  const place = { directory: data, env: { PILLARBOX_DATA_DIR: data } }
  const told = await Promise.all([pillarbox(place, 'status'), pillarbox(place, 'backup', '--auto')])
  for (const { status, errors } of told) {
    expect([status, errors]).toEqual([
      1,
      `A box has opened ${join(data, 'control.sock')} but does not answer: check its log, and restart it (systemctl restart pillarbox).\n`,
    ])
  }
})
