import { AddressBlock, Group, List, Switch, Whole } from './values.ts'

/** Events by webhook. */
export const webhooks = Group({
  allow_http: Switch.prefault(false).meta({ description: 'Allows webhooks to plain http URLs on the public internet too' }),
  allow_networks: List(AddressBlock, 'address blocks')
    .prefault([])
    .meta({
      description: 'Private networks that webhooks may reach, over http or https, on any port',
      example: ['127.0.0.0/8', '192.168.1.0/24'],
    }),
})

/** Events by WebSocket. */
export const realtime = Group({
  max_sockets: Whole(1, 1_000_000)
    .prefault(5000)
    .meta({ description: 'Maximum number of open WebSockets; they do not count towards http.max_connections', unit: 'sockets' }),
  max_sockets_per_key: Whole(1, 1_000_000)
    .prefault(20)
    .meta({ description: 'Maximum number of open WebSockets for each API key', unit: 'sockets' }),
  max_sockets_per_account: Whole(1, 1_000_000)
    .prefault(2500)
    .meta({ description: 'Maximum number of open WebSockets for each account', unit: 'sockets' }),
})
