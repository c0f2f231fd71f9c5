import { day } from '../core/clock.ts'
import { Duration, Group, time } from './values.ts'

/** The keys that sign identity tokens. */
export const tokens = Group({
  rotate_every: Duration(day, 3650 * day)
    .prefault('90 d')
    .meta({ description: 'Time after which the key that signs identity tokens and credentials is replaced', unit: time }),
})
