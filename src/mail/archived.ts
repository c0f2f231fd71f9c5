import * as z from 'zod'
import { TimestampInput } from '../core/shapes.ts'
import { Address, Delivery, EmailStatus, Label } from './model.ts'

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
  bcc: z.array(Address).max(1000).optional(),
  deliveries: z.array(Delivery).max(1000).optional(),
  /** Read from the name of a file or a `From ` line: for messages whose header does not say when they came. */
  arrived_at: TimestampInput.optional(),
})
export type State = z.output<typeof State>
