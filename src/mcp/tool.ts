import * as z from 'zod'
import type { GivenCall } from '../http/protocol.ts'
import { identityInput, inputs, publishedSchema, type ToolName } from './model.ts'

/** What a tool says. */
export interface ToolAnswer {
  text: string
  /** Brief: ids, codes and where to go on; nothing that is text. */
  data?: Record<string, unknown>
  link?: { uri: string; name: string; mimeType: string }
}

/** The means of a tool that was called: calls of the API as its caller. `route` is a declared one: `GET /identities/:id`. */
export interface ToolContext {
  /** The identity that it acts as. */
  identity: string
  /** Makes a call and returns its JSON. */
  call: <Reply>(route: string, given?: GivenCall) => Promise<Reply>
  /** True if the caller has the scopes of this call. */
  allowed: (route: string) => boolean
}

/** Honest hints for clients that ask their user before some calls. */
interface Annotations {
  readOnlyHint: boolean
  destructiveHint?: boolean
  idempotentHint?: boolean
  openWorldHint: boolean
}

export interface Tool {
  name: ToolName
  description: string
  annotations: Annotations
  /** The calls it makes; it is listed for a key that may make any one of them. */
  routes: string[]
  /** Only for keys of a whole account. */
  account: boolean
  /** A right call, for those who called it wrongly. */
  example: Record<string, unknown>
  /** The names of its input for those of the API, where they differ. */
  names: ReadonlyMap<string, string>
  /** The input of a key that is bound to one identity, and of one that is not. */
  input: { bound: z.ZodType; account: z.ZodType }
  schema: { bound: Record<string, unknown>; account: Record<string, unknown> }
  run(context: ToolContext, input: never): Promise<ToolAnswer>
}

interface Declaration<Name extends ToolName> {
  description: string
  annotations: Annotations
  routes: string[]
  account?: true
  example?: Record<string, unknown>
  names?: Record<string, string>
  run(context: ToolContext, input: z.output<z.ZodObject<(typeof inputs)[Name]>>): Promise<ToolAnswer>
}

/** Declares a tool. */
export function tool<const Name extends ToolName>(name: Name, declaration: Declaration<Name>): Tool {
  const { account = false, example = {}, names = {} } = declaration
  const own: z.ZodRawShape = inputs[name]
  const wide = account ? own : { ...own, ...identityInput }
  return {
    ...declaration,
    run: (context, input) => declaration.run(context, input),
    name,
    account,
    example,
    names: new Map(Object.entries(names)),
    input: { bound: z.strictObject(own), account: z.strictObject(wide) },
    schema: { bound: publishedSchema(own), account: publishedSchema(wide) },
  }
}

/** The parameters that are there. */
export function present(query: Record<string, string | undefined>): Record<string, string> {
  return Object.fromEntries(Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined))
}
