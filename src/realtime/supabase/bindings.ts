import * as z from 'zod'
import { Fault, invalid } from '../../core/fault.ts'
import type { Grant } from '../access.ts'
import { channels, maxSubscriptions } from '../channels.ts'
import type { Filter } from '../filter.ts'
import type { Filters } from '../filters.ts'
import type { Change } from '../frames.ts'
import { Channel, type ChannelName, channelNames } from '../model.ts'
import { maxSteps } from '../pattern.ts'

const BindingInput = z.looseObject({
  event: z.string().optional(),
  schema: z.string().optional(),
  table: z.string().optional(),
  filter: z.string().nullish(),
})

const Config = z.object({ config: z.object({ postgres_changes: z.array(BindingInput).nullish() }).nullish() })

/** One `postgres_changes` of a join. */
export interface Binding {
  id: number
  /** The client's request, echoed unchanged: the client compares it. */
  asked: z.output<typeof BindingInput>
  /** The named table, or all that the token grants. */
  tables: readonly ChannelName[]
  matches: (change: Change) => boolean
  filter: Filter | undefined
}

/**
 * Parses the bindings of a join's payload, in addition to those of its socket; the holder releases their filters. Throws Fault:
 * invalid_request for an invalid one (`param`: table, schema, filter), forbidden for a table the token does not grant, rate_limited above
 * the limits of the socket, its key or its account.
 */
export async function readBindings(
  payload: unknown,
  { grant, held, filters, nextId }: { grant: Grant; held: readonly Binding[]; filters: Filters; nextId: () => number },
): Promise<Binding[]> {
  const parsed = Config.safeParse(payload)
  if (!parsed.success) throw invalid('config', 'config.postgres_changes must be a list of {event, schema, table, filter}.')
  const inputs = parsed.data.config?.postgres_changes ?? []
  if (inputs.length + held.length > maxSubscriptions) throw tooMany(`${maxSubscriptions} bindings`)
  const bindings: Binding[] = []
  let steps = held.reduce((sum, { filter }) => sum + (filter?.steps ?? 0), 0)
  try {
    for (const asked of inputs) {
      const binding = await readBinding(asked, grant, filters, nextId)
      bindings.push(binding)
      steps += binding.filter?.steps ?? 0
      if (steps > maxSteps) throw tooMany(`patterns of ${maxSteps} steps together; use simpler ones`)
    }
  } catch (error) {
    releaseBindings(bindings, grant, filters)
    throw error
  }
  return bindings
}

/** Releases their filters. */
export function releaseBindings(bindings: readonly Binding[], grant: Grant, filters: Filters): void {
  for (const { filter } of bindings) if (filter) filters.release(grant, filter)
}

async function readBinding(asked: Binding['asked'], grant: Grant, filters: Filters, nextId: () => number): Promise<Binding> {
  const { event = '*', schema = 'public', table, filter: text } = asked
  if (schema !== 'public' && schema !== '*') throw invalid('schema', 'The only schema is public.')
  const tables = tablesOf(table, grant)
  const filter = text === undefined || text === null || text === '' ? undefined : await filters.hold(grant, text)
  try {
    requireColumns(filter, tables)
  } catch (error) {
    if (filter) filters.release(grant, filter)
    throw error
  }
  const change = event.toUpperCase()
  const matches = (heard: Change): boolean => !['INSERT', 'UPDATE', 'DELETE'].includes(change) || change === heard
  return { id: nextId(), asked, tables, matches: matches, filter }
}

function tooMany(what: string): Fault {
  return new Fault('rate_limited', `A WebSocket can have at most ${what}.`, { code: 'too_many_subscriptions' })
}

function tablesOf(table: string | undefined, grant: Grant): ChannelName[] {
  if (table === undefined || table === '*') {
    if (grant.channels.size > 0) return []
    throw new Fault('forbidden', 'The token allows no table.', { code: 'not_permitted' })
  }
  const known = Channel.safeParse(table)
  if (!known.success) throw invalid('table', `There is no table ${table}; the tables are ${channelNames.join(', ')}.`)
  if (grant.channels.has(known.data)) return [known.data]
  throw new Fault('forbidden', `The token does not allow the table ${table}.`, { code: 'not_permitted' })
}

/** A mistyped column would be a filter that never matches. */
function requireColumns(filter: Filter | undefined, tables: readonly ChannelName[]): void {
  if (!filter || tables.length !== 1) return
  const { columns } = channels[tables[0]!]
  const unknown = columns && filter.columns.find((column) => !columns.has(column))
  if (unknown !== undefined) throw invalid('filter', `The table ${tables[0]} has no column ${unknown}.`, 'bad_filter')
}
