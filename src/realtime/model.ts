import * as z from 'zod'
import { Id, Timestamp } from '../core/shapes.ts'

/** The channels; the same names are the tables of the Supabase protocol. */
export const channelNames = ['agent_events', 'email_messages', 'sms_messages'] as const
export type ChannelName = (typeof channelNames)[number]

export const Channel = z.enum(channelNames, { error: `must be one of ${channelNames.join(', ')}` })

export const TokenInput = z
  .strictObject({
    identity_id: Id('ident').optional().meta({ description: 'grants access only to this identity; default: the whole account' }),
    channels: z
      .array(Channel)
      .min(1)
      .transform((list) => [...new Set(list)])
      .optional()
      .meta({
        description: 'grants access only to these; default: every channel the key may read',
        override: { type: 'array', items: { type: 'string', enum: [...channelNames] }, minItems: 1 },
      }),
    expires_in: z.int().min(1).max(3600).default(300).meta({ description: 'seconds for which it can connect and join' }),
  })
  .meta({ id: 'RealtimeTokenWish' })
export type TokenInput = z.output<typeof TokenInput>

export const RealtimeToken = z
  .object({
    token: z.string().meta({ example: 'rtt_…' }),
    expires_at: Timestamp,
    url: z.string().meta({ description: 'URL of the WebSocket', example: 'wss://box.example.com/v1/realtime' }),
    frames: z
      .object({
        subscribe: z.object({ type: z.literal('subscribe'), channel: Channel, identity_id: Id('ident').optional() }),
        resume: z.object({
          type: z.literal('subscribe'),
          channel: Channel,
          identity_id: Id('ident').optional(),
          since: z.string(),
        }),
        unsubscribe: z.object({ type: z.literal('unsubscribe'), channel: Channel, identity_id: Id('ident').optional() }),
        refresh: z.object({ type: z.literal('refresh'), token: z.string() }),
        ping: z.object({ type: z.literal('ping') }),
      })
      .meta({
        description:
          'examples of what to send to url, for this token, as JSON texts: subscribe is answered by {"type":"subscribed",…} and then {"type":"event","channel":…,"event":{…}} for each event; ' +
          'resume, after a reconnect, names the id of the last event that was handled; a wrong frame is answered by {"type":"error","code":…,"message":…}',
      }),
    supabase_url: z.string().meta({ description: 'the first argument of createClient', example: 'https://box.example.com' }),
  })
  .meta({ id: 'RealtimeToken' })
export type RealtimeToken = z.output<typeof RealtimeToken>
