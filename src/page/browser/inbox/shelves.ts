/** The ways to look at the mail of an identity, with what the API is asked for each. */
export const shelves = {
  conversations: { label: 'Conversations', query: {} },
  received: { label: 'Received', query: {} },
  sent: { label: 'Sent', query: { direction: 'outbound' } },
  unread: { label: 'Unread', query: { unread: true } },
  spam: { label: 'Spam', query: { spam: true } },
  trash: { label: 'Trash', query: { trash: true } },
} as const

export type Shelf = keyof typeof shelves
