import { expect, it } from 'vitest'
import { Cursors } from '../../src/core/cursor.ts'
import { Fault } from '../../src/core/fault.ts'

const cursors = new Cursors(Buffer.alloc(32, 3))

function expectRefusal(list: string, cursor: string): void {
  let refusal: unknown
  try {
    cursors.read(list, cursor)
  } catch (error) {
    refusal = error
  }
  expect(refusal, cursor).toBeInstanceOf(Fault)
  expect(refusal).toMatchObject({ type: 'invalid_request', param: 'cursor', code: 'bad_cursor' })
}

it.each([0, 1, 35, 36, 123_456_789, Number.MAX_SAFE_INTEGER])('gives the position %d back', (position) => {
  expect(cursors.read('emails of ident_1', cursors.write('emails of ident_1', position))).toBe(position)
})

it('refuses the cursor of another list, or of another box', () => {
  expectRefusal('emails of ident_2', cursors.write('emails of ident_1', 7))
  expectRefusal('emails of ident_1', new Cursors(Buffer.alloc(32, 4)).write('emails of ident_1', 7))
})

it('refuses a cursor with any letter changed, added or left out', () => {
  const cursor = cursors.write('list', 1_000_000)
  for (let place = 0; place < cursor.length; place++) {
    for (const letter of ['A', 'b', '0', '-', '.', '~', 'ß']) {
      const changed = cursor.slice(0, place) + letter + cursor.slice(place + 1)
      if (changed !== cursor) expectRefusal('list', changed)
    }
    expectRefusal('list', cursor.slice(0, place) + cursor.slice(place + 1))
  }
  for (const around of [
    `${cursor}.`,
    `${cursor}=`,
    `${cursor}.x`,
    ` ${cursor}`,
    `${cursor}\n`,
    `0${cursor}`,
    cursor.toUpperCase(),
  ])
    expectRefusal('list', around)
})

it.each(['', '.', '..', 'garbage', 'NaN.AAAAAAAAAAAA', '-1.AAAAAAAAAAAA', '1', '9'.repeat(200), '\u0000', '{"seq":1}'])(
  'refuses %j',
  (cursor) => {
    expectRefusal('list', cursor)
  },
)
