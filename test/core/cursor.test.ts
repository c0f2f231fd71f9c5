import { expect, it } from 'vitest'
import { Cursors } from '../../src/store/page.ts'
import { Fault } from '../../src/core/fault.ts'

const cursors = new Cursors(Buffer.alloc(32, 3))

/** Which of the cursors are not refused, or not in the right way. */
function taken(list: string, candidates: string[]): string[] {
  return candidates.filter((cursor) => {
    try {
      cursors.read(list, cursor)
      return true
    } catch (error) {
      return !(
        error instanceof Fault &&
        error.type === 'invalid_request' &&
        error.param === 'cursor' &&
        error.code === 'bad_cursor'
      )
    }
  })
}

it.each([0, 1, 35, 36, 123_456_789, Number.MAX_SAFE_INTEGER])('gives the position %d back', (position) => {
  expect(cursors.read('emails of ident_1', cursors.write('emails of ident_1', position))).toBe(position)
})

it('refuses the cursor of another list, or of another box', () => {
  expect(taken('emails of ident_2', [cursors.write('emails of ident_1', 7)])).toEqual([])
  expect(taken('emails of ident_1', [new Cursors(Buffer.alloc(32, 4)).write('emails of ident_1', 7)])).toEqual([])
})

it('refuses a cursor with any letter changed, added or left out', () => {
  const cursor = cursors.write('list', 1_000_000)
  const changed = [`${cursor}.`, `${cursor}=`, `${cursor}.x`, ` ${cursor}`, `${cursor}\n`, `0${cursor}`, cursor.toUpperCase()]
  for (let place = 0; place < cursor.length; place++) {
    for (const letter of ['', 'A', 'b', '0', '-', '.', '~', 'ß'])
      changed.push(cursor.slice(0, place) + letter + cursor.slice(place + 1))
  }
  expect(
    taken(
      'list',
      changed.filter((candidate) => candidate !== cursor),
    ),
  ).toEqual([])
  expect(taken('list', [cursor])).toEqual([cursor])
})

it('refuses what never was a cursor', () => {
  const garbage = ['', '.', '..', 'garbage', 'NaN.AAAAAAAAAAAA', '-1.AAAAAAAAAAAA', '1', '9'.repeat(200), '\u0000', '{"seq":1}']
  expect(taken('list', garbage)).toEqual([])
})
