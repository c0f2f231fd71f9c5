import type { Sms } from '../../../sms/model.ts'

/** Whom a text message is exchanged with. */
export function peerOf({ direction, from, to }: Sms): string {
  return direction === 'inbound' ? from : to
}

/** What was exchanged with one number, as far as it was read. */
export interface Exchange {
  peer: string
  last: Sms
  unread: number
}

/** Messages, newest first, by whom they are exchanged with. */
export function exchangesOf(messages: readonly Sms[]): Exchange[] {
  const exchanges = new Map<string, Exchange>()
  for (const message of messages) {
    const peer = peerOf(message)
    const known = exchanges.get(peer) ?? { peer, last: message, unread: 0 }
    if (!message.read && message.direction === 'inbound') known.unread++
    exchanges.set(peer, known)
  }
  return [...exchanges.values()]
}

/** One list of which there may be more, newest first. */
export interface Half {
  rows: readonly Sms[]
  hasMore: boolean
}

/** Two lists as one, oldest first, as far back as both were read: beyond that there would be holes. */
export function woven(one: Half, other: Half): Sms[] {
  const from = [one, other].map(({ rows, hasMore }) => (hasMore ? (rows.at(-1)?.created_at ?? '') : ''))
  const begin = from.reduce((latest, at) => (at > latest ? at : latest), '')
  return [...one.rows, ...other.rows]
    .filter(({ created_at }) => created_at >= begin)
    .toSorted((first, second) => (first.created_at < second.created_at ? -1 : 1))
}
