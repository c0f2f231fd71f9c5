import { brandOf, type CardDetails, type CardKey, encryptCard } from './cards.ts'
import { InvalidRequestError, PillarboxError } from './errors.ts'
import { type EventOptions, EventStream } from './events.ts'
import { type Methods, methods } from './methods.ts'
import { type RequestOptions, Transport, type TransportOptions } from './request.ts'
import type { Card, NewCard, Page } from './types.ts'
import { type Arrived, type WaitOptions, Waits } from './wait.ts'

export interface PillarboxOptions extends TransportOptions {
  /** For `cards.create` with a number. It never leaves this program. */
  cardKey?: CardKey | undefined
  /** Where there is no global one (Node.js before 22). */
  WebSocket?: typeof WebSocket | undefined
}

/** A card as its owner knows it: encrypted here, and sent without its number. */
export type PlainCard = CardDetails & Omit<NewCard, 'encrypted_data' | 'last4' | 'brand'> & { brand?: string | undefined }

type Cards = Omit<Methods['cards'], 'create'> & {
  /** Store a card. With a `number` it is encrypted here, under `cardKey`; else `encrypted_data` is sent as it is. */
  create(identityId: string, body: NewCard | PlainCard, options?: RequestOptions): Promise<Card>
}

/** A client of one box, with one key. */
export interface Pillarbox extends Omit<Methods, 'cards'> {
  cards: Cards
  /** Events as they happen: `for await (const event of client.events())`. Loses none when a connection breaks. */
  events(options?: EventOptions): EventStream
  /** The next message. Throws TimeoutError, code `no_message`. */
  waitForMessage(identity: string | { id: string }, options?: WaitOptions): Promise<Arrived>
  /** The next message with a code in it; `code` is the first. Throws TimeoutError, code `no_message`. */
  waitForCode(identity: string | { id: string }, options?: WaitOptions): Promise<Arrived & { code: string }>
}

/** A client of one box: `new Pillarbox({ baseUrl, apiKey })`. */
export const Pillarbox = function (options: PillarboxOptions): Pillarbox {
  const transport = new Transport(options)
  const all: Record<string, Record<string, unknown>> = {}
  for (const [group, text] of Object.entries(methods)) {
    let base = ''
    all[group] = {}
    for (const line of text.split('\n')) {
      if (/^\w/.test(line)) Object.assign(all[group], methodsOf(transport, base, line))
      else base = line
    }
  }
  const groups = all as unknown as Methods
  const waits = new Waits(groups.identities, transport)
  const source = {
    WebSocket: options.WebSocket ?? globalThis.WebSocket,
    token: (...[wish, signal]: [Parameters<Methods['realtime']['token']>[0], AbortSignal]) =>
      groups.realtime.token(wish, { signal }),
  }
  return {
    ...groups,
    cards: { ...groups.cards, create: (id, body, more) => createCard(groups, options.cardKey, [id, body, more]) },
    events: (wanted = {}) => new EventStream(source, wanted),
    waitForMessage: (identity, wanted = {}) => waits.next(identity, wanted, () => true),
    waitForCode: async (identity, wanted = {}) => {
      const arrived = await waits.next(identity, wanted, ({ codes }) => codes.length > 0)
      return { ...arrived, code: arrived.codes[0]! }
    },
  }
} as unknown as new (options: PillarboxOptions) => Pillarbox

type Method = (...given: unknown[]) => Promise<unknown>

/** A method, and with a page the iterator over its rows, from a line of the table. */
function methodsOf(transport: Transport, base: string, line: string): Record<string, unknown> {
  const [name, ...words] = line.split(' ') as [string, ...string[]]
  const method = /^[A-Z]/.test(words[0] ?? '') ? words.shift()! : 'GET'
  const path = base + (words[0]?.startsWith('/') ? words.shift() : '')
  const [word] = words
  const kind = word === 'page' ? 'query' : word
  const deletes = method === 'DELETE' && path.endsWith('}')
  const call: Method = async (...given) => {
    const id = deletes ? String(given[path.split('{').length - 2]) : undefined
    const filled = path.replaceAll(/\{(\w+)\}/g, (_, param: string) => segment(param, given.shift()))
    const takes = kind === 'query' || kind === 'body' || kind === 'octets'
    const input = takes ? { [kind]: given.shift() ?? {} } : {}
    return transport.send({ method, path: filled, ...input, answer: words.at(-1), deletes: id }, given[0] as RequestOptions)
  }
  if (word !== 'page') return { [name]: call }
  const iterator = name === 'list' ? 'iterate' : `iterate${name[0]!.toUpperCase()}${name.slice(1)}`
  return { [name]: call, [iterator]: rowsOf(call, path.split('{').length - 1) }
}

function rowsOf(call: Method, ids: number) {
  return async function* rows(...given: unknown[]): AsyncGenerator<unknown, void> {
    let query = (given[ids] ?? {}) as { cursor?: string; offset?: number | undefined }
    for (;;) {
      const page = (await call(...given.slice(0, ids), query, given[ids + 1])) as Page<unknown>
      yield* page.data
      if (!page.has_more || page.next_cursor === null) return
      query = { ...query, cursor: page.next_cursor, offset: undefined }
    }
  }
}

/** An id in a path. What would name another path is refused. */
function segment(param: string, value: unknown): string {
  const text = typeof value === 'number' ? String(value) : value
  if (typeof text === 'string' && !/^\.{0,2}$/.test(text)) return encodeURIComponent(text)
  throw new InvalidRequestError(`${param} must be an id, not ${JSON.stringify(value)}.`, 'invalid_id', { param })
}

async function createCard(
  { cards }: Methods,
  cardKey: CardKey | undefined,
  [identityId, body, options]: [string, NewCard | PlainCard, RequestOptions | undefined],
): Promise<Card> {
  if (!('number' in body)) return cards.create(identityId, body, options)
  if (cardKey === undefined) {
    throw new PillarboxError('To store a number, make the client with a cardKey (of newCardKey).', 'no_card_key', {
      param: 'cardKey',
    })
  }
  // what is not known to be harmless is encrypted
  const { label, card_name, budget, budget_cents, currency, period, brand, ...details } = body
  const { number, exp_month, exp_year } = details
  const encrypted_data = await encryptCard(cardKey, details)
  const [last4, named] = [number.slice(-4), brand ?? brandOf(number)]
  const told = { label, card_name, budget, budget_cents, currency, period, exp_month, exp_year, last4, brand: named }
  return cards.create(identityId, { ...told, encrypted_data }, options)
}
