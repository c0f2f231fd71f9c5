import * as z from 'zod'
import { TimestampInput } from '../core/shapes.ts'
import { Address, Delivery, EmailStatus, Label } from './model.ts'

/** People that a message has at most, and what one of them is called: nothing of ours has more. */
const most = 100
const Named = z.object({ ...Address.shape, address: z.string().max(320), name: z.string().max(1000) })

const Delivered = z.object({
  ...Delivery.shape,
  recipient: z.string().max(320),
  enhanced_code: z.string().max(32).nullable(),
  response: z.string().max(10_000).nullable(),
  mx: z.string().max(300).nullable(),
  tls: z.string().max(300).nullable(),
})

/** What an archive says of a message beside its octets, as far as the box takes it over: never what the checks said. */
export const State = z.object({
  direction: z.enum(['inbound', 'outbound']).optional(),
  status: EmailStatus.optional(),
  read: z.boolean().optional(),
  spam: z.boolean().optional(),
  labels: z.array(Label).max(100).optional(),
  to: z.string().max(100_000).optional(),
  tag: z.string().max(64).nullish(),
  mail_from: z.string().max(320).optional(),
  received_at: TimestampInput.optional(),
  sent_at: TimestampInput.nullish(),
  send_at: TimestampInput.nullish(),
  duplicate_of: z.string().nullish(),
  bcc: z.array(Named).max(most).optional(),
  deliveries: z.array(Delivered).max(most).optional(),
  /** Read from the name of a file or a `From ` line: for messages whose header does not say when they came. */
  arrived_at: TimestampInput.optional(),
})
export type State = z.output<typeof State>
