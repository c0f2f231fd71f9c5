import type { ComponentType } from 'preact'

/** What a room is given: the parameters of its path. */
export interface RoomProps {
  params: Record<string, string>
}

/** One view of the page. Whatever its module exports as `Room` is fetched when somebody first goes there. */
export interface Room {
  /** As the router reads it, `/domains/:id`; its first word must be one of `places` in ../paths.ts. */
  path: string
  /** The title of the browser's tab. */
  title: string
  /** Its name in the navigation at the top; left out: it is not there. */
  navigation?: string
  /** Its name among the tabs of an identity, for paths below `/identities/:id`. */
  tab?: string
  load: () => Promise<{ Room: ComponentType<RoomProps> }>
}

const identities = (): ReturnType<Room['load']> => import('./rooms/identities.tsx')

const inbox = (): ReturnType<Room['load']> => import('./rooms/inbox.tsx')

const sms = (): ReturnType<Room['load']> => import('./rooms/sms.tsx')

/** Every room, in the order of the navigation. */
export const rooms: Room[] = [
  { path: '/', title: 'Identities', navigation: 'Identities', load: identities },
  { path: '/identities', title: 'Identities', load: identities },
  { path: '/identities/:id', title: 'Inbox', load: inbox },
  { path: '/identities/:id/inbox', title: 'Inbox', tab: 'Inbox', load: inbox },
  { path: '/identities/:id/inbox/:thread_id', title: 'Inbox', load: inbox },
  { path: '/identities/:id/sms', title: 'Text messages', tab: 'SMS', load: sms },
  { path: '/identities/:id/sms/:peer', title: 'Text messages', load: sms },
  { path: '/identities/:id/cards', title: 'Cards', tab: 'Cards', load: () => import('./rooms/cards.tsx') },
  {
    path: '/identities/:id/totp',
    title: 'One-time passwords',
    tab: 'One-time passwords',
    load: () => import('./rooms/totp.tsx'),
  },
  { path: '/identities/:id/archive', title: 'Export and import', tab: 'Export', load: () => import('./rooms/archive.tsx') },
  { path: '/identities/:id/settings', title: 'Identity', tab: 'Settings', load: () => import('./rooms/identity.tsx') },
  { path: '/agents', title: 'Agents', navigation: 'Agents', load: () => import('./rooms/agents.tsx') },
  { path: '/agents/:id', title: 'Agent', load: () => import('./rooms/agent.tsx') },
  { path: '/domains', title: 'Domains', navigation: 'Domains', load: () => import('./rooms/domains.tsx') },
  { path: '/domains/:id', title: 'Domain', load: () => import('./rooms/domain.tsx') },
  { path: '/webhooks', title: 'Webhooks', navigation: 'Webhooks', load: () => import('./rooms/webhooks.tsx') },
  { path: '/webhooks/:id', title: 'Webhook', load: () => import('./rooms/webhook.tsx') },
  { path: '/keys', title: 'API keys', navigation: 'Keys', load: () => import('./rooms/keys.tsx') },
  { path: '/health', title: 'Health', navigation: 'Health', load: () => import('./rooms/health.tsx') },
  { path: '/account', title: 'Account', navigation: 'Account', load: () => import('./rooms/account.tsx') },
]

/** For who has no password yet; it stands alone. */
export const setup: Room = { path: '/setup', title: 'Welcome', load: () => import('./rooms/setup.tsx') }
