import { day } from '../core/clock.ts'
import { AddressBlock, Duration, Group, List, Switch, time, Whole } from './values.ts'

/** Events by webhook. */
export const webhooks = Group({
  allow_http: Switch.prefault(false).meta({ description: 'Let webhooks go to plain http URLs of the open internet too' }),
  allow_networks: List(AddressBlock, 'address blocks')
    .prefault([])
    .meta({
      description: 'Networks that webhooks may reach although they are private, over http or https, on any port',
      example: ['127.0.0.0/8', '192.168.1.0/24'],
    }),
})

/** Events by WebSocket. */
export const realtime = Group({
  max_sockets: Whole(1, 1_000_000)
    .prefault(5000)
    .meta({ description: 'WebSockets open at once; they do not count among http.max_connections', unit: 'sockets' }),
  max_sockets_per_key: Whole(1, 1_000_000)
    .prefault(20)
    .meta({ description: 'WebSockets open at once with tokens of one API key', unit: 'sockets' }),
  max_sockets_per_account: Whole(1, 1_000_000)
    .prefault(2500)
    .meta({ description: 'WebSockets open at once with tokens of one account', unit: 'sockets' }),
})

/** What the box signs. */
export const tokens = Group({
  rotate_every: Duration(day, 3650 * day)
    .prefault('90 d')
    .meta({ description: 'How long a key signs identity tokens and credentials before the next one takes over', unit: time }),
})
