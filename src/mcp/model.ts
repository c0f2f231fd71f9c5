import * as z from 'zod'

/** A list in the schema that clients see; a single text is understood too, as models send both. */
const Texts = z
  .union([z.string().min(1), z.array(z.string().min(1)).min(1).max(100)], {
    error: ({ input }) => (input === undefined ? 'is required' : 'must be a list of texts'),
  })
  .transform((given) => [given].flat())
  .meta({ published: { type: 'array', items: { type: 'string' } } })

const Whole = (minimum: number, maximum: number, fallback: number) => z.int().min(minimum).max(maximum).default(fallback)
const Offset = z.int().min(0).max(100_000_000).default(0)
const Message = z.string().min(1).max(64)
const Channel = z.enum(['email', 'sms'])
const IdempotencyKey = z.string().min(1).max(255).optional().describe('same key, sent once')

/** The inputs of the tools. Clients put them into every prompt: each word costs. */
export const inputs = {
  whoami: {},
  wait_for_message: {
    from: z.string().min(1).max(320).optional().describe('part of sender'),
    subject: z.string().min(1).max(998).optional().describe('part of subject'),
    channel: Channel.optional(),
    since: z.string().min(1).max(64).optional().describe('since of the last answer, or a time'),
    timeout: Whole(0, 50, 30).describe('seconds, at most 50'),
  },
  list_messages: {
    query: z.string().min(1).max(1000).optional().describe('words, "phrase", from:, subject: (e-mail)'),
    unread: z.boolean().optional(),
    channel: Channel.optional(),
    sent: z.boolean().optional().describe('sent instead of received'),
    limit: Whole(1, 25, 10),
    cursor: z.string().min(1).max(200).optional(),
  },
  read_message: {
    id: Message,
    full: z.boolean().default(false).describe('with quoted text'),
    offset: Offset,
  },
  read_thread: {
    id: Message.describe('of a thread or message'),
    last: Whole(1, 20, 5),
  },
  read_attachment: {
    message_id: Message,
    index: z.int().min(0).max(9999),
    as: z.enum(['text', 'link']).default('text'),
    offset: Offset,
  },
  send_email: {
    to: Texts,
    subject: z.string().max(10_000),
    text: z.string(),
    cc: Texts.optional(),
    bcc: Texts.optional(),
    attachments: z
      .array(
        z.strictObject({
          filename: z.string().min(1).max(255),
          text: z.string().optional(),
          base64: z.string().optional(),
          url: z.string().max(2048).optional(),
        }),
      )
      .max(100)
      .optional()
      .describe('one of text, base64, url'),
    send_at: z.string().min(1).max(64).optional().describe('ISO 8601'),
    idempotency_key: IdempotencyKey,
  },
  reply_email: {
    message_id: Message,
    text: z.string(),
    reply_all: z.boolean().default(false),
    forward_to: Texts.optional().describe('forward instead'),
    idempotency_key: IdempotencyKey,
  },
  send_sms: {
    to: z.string().min(1).max(64).describe('+15550100123'),
    body: z.string().min(1),
  },
  message_status: {
    id: Message,
    cancel: z.boolean().default(false),
  },
  mark_messages: {
    ids: Texts,
    read: z.boolean().optional(),
    labels: Texts.optional().describe('-name removes'),
    trash: z.boolean().default(false),
  },
  read_login: {
    service: z.string().min(1).max(2048),
    purpose: z.string().min(1).max(500).optional(),
    offset: Offset,
  },
  one_time_password: { service: z.string().min(1).max(128) },
  identity_token: { audience: z.string().min(1).max(512).describe('who will verify it: its URL') },
  list_identities: {
    query: z.string().min(1).max(200).optional().describe('part of name or address'),
    cursor: z.string().min(1).max(200).optional(),
  },
  create_identity: {
    name: z.string().min(1).max(128).optional(),
    username: z.string().min(1).max(56).optional().describe('before the @'),
    domain: z.string().min(1).max(253).optional(),
    expires_at: z.string().min(1).max(64).optional().describe('ISO 8601; deleted then'),
  },
  list_domains: { cursor: z.string().min(1).max(200).optional() },
  list_holds: { cursor: z.string().min(1).max(200).optional() },
  get_doctor: {},
} satisfies Record<string, z.ZodRawShape>

export type ToolName = keyof typeof inputs

/** The identity that a key of the whole account acts as. */
export const identityInput = {
  identity: z.string().min(1).max(320).optional().describe('id or address; needed if several'),
}

/** JSON Schema of an input, as short as can be. */
export function publishedSchema(shape: z.ZodRawShape): Record<string, unknown> {
  const { $schema: _, ...schema } = z.toJSONSchema(z.strictObject(shape), {
    io: 'input',
    override: ({ zodSchema, jsonSchema }) => {
      const published = z.globalRegistry.get(zodSchema as unknown as z.ZodType)?.['published'] as object | undefined
      if (published) {
        for (const name of Object.keys(jsonSchema)) if (name !== 'description') delete jsonSchema[name as keyof typeof jsonSchema]
        Object.assign(jsonSchema, published)
      }
      // what is refused is said when it is sent
      for (const name of ['minLength', 'maxLength', 'maxItems', 'minItems'] as const) delete jsonSchema[name]
      if (jsonSchema.type === 'integer') for (const name of ['minimum', 'maximum'] as const) delete jsonSchema[name]
      if (jsonSchema.default === false || jsonSchema.default === 0) delete jsonSchema.default
    },
  })
  return schema
}
