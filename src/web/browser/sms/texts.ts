import type { Sms } from '../../../sms/model.ts'

/** The number of the other party. */
export function peerOf({ direction, from, to }: Sms): string {
  return direction === 'inbound' ? from : to
}

interface Exchange {
  peer: string
  last: Sms
  unread: number
}

/** Groups messages, newest first, by the other party. */
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

/** One list that may have more pages, newest first. */
interface Half {
  rows: readonly Sms[]
  hasMore: boolean
}

/** Merges two lists, oldest first, as far back as both are loaded: beyond that there would be gaps. */
export function woven(one: Half, other: Half): Sms[] {
  const from = [one, other].map(({ rows, hasMore }) => (hasMore ? (rows.at(-1)?.created_at ?? '') : ''))
  const begin = from.reduce((latest, at) => (at > latest ? at : latest), '')
  return [...one.rows, ...other.rows]
    .filter(({ created_at }) => created_at >= begin)
    .toSorted((first, second) => (first.created_at < second.created_at ? -1 : 1))
}
