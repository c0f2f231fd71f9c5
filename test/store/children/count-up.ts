import { StateFile } from '../../../src/store/state.ts'
import { writeLine } from '../../support/write-line.ts'

// adds one account after the other, and writes how many there are once that is on disk
const state = await StateFile.open(process.argv[2]!, () => {
  throw new Error('there must be a document')
})
for (let round = 0; round < 100_000; round++) {
  await state.update((document) => {
    document.box_id = `box ${Number(document.box_id.slice(4)) + 1}`
  })
  await writeLine(state.data.box_id)
}
