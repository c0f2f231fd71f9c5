import { Duration, Group } from './values.ts'
import { time } from './words.ts'

const day = 86_400_000

/** What the box signs. */
export const tokens = Group({
  rotate_every: Duration(day, 3650 * day)
    .prefault('90 d')
    .meta({ description: 'How long a key signs identity tokens and credentials before the next one takes over', unit: time }),
})
