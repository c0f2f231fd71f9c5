import { type AnyRoute, routePaths } from '../route.ts'

/** The tags of all routes, in the order in which callers need them. */
export const tagOrder = [
  'Identities',
  'E-mail',
  'Timeline',
  'Threads',
  'Webhooks',
  'Realtime',
  'SMS',
  'One-time passwords',
  'Cards',
  'Logins',
  'Domains',
  'Senders',
  'Policy',
  'Suppressions',
  'API keys',
  'Agents',
  'Identity tokens',
  'Reputation and trust',
  'Public documents',
  'Export and import',
  'Jobs',
  'Account',
  'People',
  'Sessions',
  'Audit log',
  'Backups',
  'Doctor',
  'Operation',
  'Reference',
]

/** Tags that only the complete OpenAPI document has, so that the usual one is short. */
export const rarelyRead = [
  'Logins',
  'Domains',
  'Senders',
  'Policy',
  'Suppressions',
  'Agents',
  'Identity tokens',
  'Reputation and trust',
  'Public documents',
  'Export and import',
  'Jobs',
  'People',
  'Sessions',
  'Audit log',
  'Backups',
  'Doctor',
  'Operation',
]

/** The routes by their tags; under a tag short paths before long ones, downloads by signed URLs and other paths than those of the API last. */
export function inOrder(routes: readonly AnyRoute[]): AnyRoute[] {
  return routes.toSorted((one, other) => place(one.tag) - place(other.tag) || depth(one) - depth(other))
}

function place(tag: string): number {
  const index = tagOrder.indexOf(tag)
  return index < 0 ? tagOrder.length : index
}

function depth(route: AnyRoute): number {
  const path = routePaths([route])[0]!.path
  const last = !path.startsWith('/v1/') || (route.scope === 'public' && route.download !== undefined)
  return (last ? 100 : 0) + path.split('/').length
}
