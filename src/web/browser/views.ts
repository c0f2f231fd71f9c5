import type { ComponentType } from 'preact'

/** The props of a view: the parameters of its path. */
export interface ViewProps {
  params: Record<string, string>
}

/** One view of the page. Its module exports a component `View` and is loaded on first use. */
export interface View {
  /** The route, such as `/domains/:id`; its first segment must be one of `places` in ../site.ts. */
  path: string
  title: string
  /** Its name in the navigation; omitted: it is not there. */
  navigation?: string
  /** Its name among the tabs of an identity, for paths below `/identities/:id`. */
  tab?: string
  load: () => Promise<{ View: ComponentType<ViewProps> }>
}

const inbox = (): ReturnType<View['load']> => import('./views/inbox.tsx')

const sms = (): ReturnType<View['load']> => import('./views/sms.tsx')

const policy = (): ReturnType<View['load']> => import('./views/policy.tsx')

const holds = (): ReturnType<View['load']> => import('./views/holds.tsx')

const webhooks = (): ReturnType<View['load']> => import('./views/webhooks.tsx')

const domains = (): ReturnType<View['load']> => import('./views/domains.tsx')

const agents = (): ReturnType<View['load']> => import('./views/agents.tsx')

/** Every view, in the order of the navigation. */
export const views: View[] = [
  { path: '/', title: 'Activity', navigation: 'Activity', load: () => import('./views/activity.tsx') },
  { path: '/identities', title: 'Identities', navigation: 'Identities', load: () => import('./views/identities.tsx') },
  { path: '/identities/:id', title: 'Inbox', load: inbox },
  { path: '/identities/:id/inbox', title: 'Inbox', tab: 'Inbox', load: inbox },
  { path: '/identities/:id/inbox/:thread_id', title: 'Inbox', load: inbox },
  { path: '/identities/:id/sms', title: 'Text messages', tab: 'SMS', load: sms },
  { path: '/identities/:id/sms/:peer', title: 'Text messages', load: sms },
  { path: '/identities/:id/cards', title: 'Cards', tab: 'Cards', load: () => import('./views/cards.tsx') },
  {
    path: '/identities/:id/totp',
    title: 'One-time passwords',
    tab: 'One-time passwords',
    load: () => import('./views/totp.tsx'),
  },
  { path: '/identities/:id/logins', title: 'Logins', tab: 'Logins', load: () => import('./views/logins.tsx') },
  { path: '/identities/:id/policy', title: 'Policy', tab: 'Policy', load: policy },
  { path: '/identities/:id/archive', title: 'Export and import', tab: 'Export', load: () => import('./views/archive.tsx') },
  { path: '/identities/:id/settings', title: 'Identity', tab: 'Settings', load: () => import('./views/identity.tsx') },
  { path: '/holds', title: 'Holds', navigation: 'Holds', load: holds },
  { path: '/holds/:id', title: 'Hold', load: holds },
  { path: '/policy', title: 'Policy', navigation: 'Policy', load: policy },
  { path: '/agents', title: 'Agents', navigation: 'Agents', load: agents },
  { path: '/agents/:id', title: 'Agent', load: agents },
  { path: '/domains', title: 'Domains', navigation: 'Domains', load: domains },
  { path: '/domains/:id', title: 'Domain', load: domains },
  { path: '/webhooks', title: 'Webhooks', navigation: 'Webhooks', load: webhooks },
  { path: '/webhooks/:id', title: 'Webhook', load: webhooks },
  { path: '/keys', title: 'API keys', navigation: 'Keys', load: () => import('./views/keys.tsx') },
  { path: '/health', title: 'Health', navigation: 'Health', load: () => import('./views/health.tsx') },
  { path: '/account', title: 'Account', navigation: 'Account', load: () => import('./views/account.tsx') },
  { path: '/account/people', title: 'People', load: () => import('./views/people.tsx') },
  { path: '/account/audit', title: 'Audit log', load: () => import('./views/audit.tsx') },
]

/** Where people come without a password yet; shown without the layout. */
export const arrivals: View[] = [
  { path: '/setup', title: 'Welcome', load: () => import('./arrivals/setup.tsx') },
  { path: '/decide', title: 'Decide', load: () => import('./arrivals/decide.tsx') },
  { path: '/invitation', title: 'Invitation', load: () => import('./arrivals/invitation.tsx') },
]
