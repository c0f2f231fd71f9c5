import { writeSync } from 'node:fs'
import { StateFile } from '../../../src/store/state.ts'

// adds one account after the other, and writes how many there are once that is on disk
const state = await StateFile.open(process.argv[2]!, () => {
  throw new Error('there must be a document')
})
for (let round = 0; round < 100_000; round++) {
  await state.update((document) => {
    document.box_id = `box ${Number(document.box_id.slice(4)) + 1}`
  })
  writeSync(1, `${state.data.box_id}\n`)
}
