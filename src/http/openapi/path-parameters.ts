import * as z from 'zod'

/** What the ids in paths are of, and their prefix: by the name of the parameter, for `id` by the segment before it. */
const things: Record<string, [thing: string, prefix: string]> = {
  identities: ['identity', 'ident'],
  email_id: ['e-mail', 'email'],
  thread_id: ['thread', 'thread'],
  sms_id: ['text message', 'sms'],
  totp_id: ['one-time password', 'totp'],
  cards: ['card', 'card'],
  logins: ['login', 'login'],
  domains: ['domain', 'dom'],
  alias_id: ['alias', 'alias'],
  suppressions: ['suppression', 'sup'],
  webhooks: ['webhook', 'whk'],
  delivery_id: ['delivery', 'dlv'],
  queue: ['queued delivery', 'dlv'],
  'api-keys': ['API key', 'key'],
  agents: ['agent', 'agent'],
  link_id: ['link', 'link'],
  jobs: ['job', 'job'],
  job_id: ['job', 'job'],
  accounts: ['account', 'acct'],
}

/** The parameters of `/v1/identities/:id/emails/:email_id`, each one component of all paths that have it. */
export function pathParameters(path: string): z.ZodObject | undefined {
  const segments = path.split('/')
  const shapes = segments.flatMap((segment, at) => {
    if (!segment.startsWith(':')) return []
    const name = segment.slice(1)
    return [[name, parameterOf(name === 'id' ? segments[at - 1]! : name)]]
  })
  return shapes.length === 0 ? undefined : z.object(Object.fromEntries(shapes) as z.ZodRawShape)
}

const made = new Map<string, z.ZodType>()

function parameterOf(key: string): z.ZodType {
  const known = made.get(key)
  if (known) return known
  const parameter = describedBy(key)
  made.set(key, parameter)
  return parameter
}

function describedBy(key: string): z.ZodType {
  const [thing, prefix] = things[key] ?? []
  if (thing === undefined)
    return z.string().meta({ param: { id: key }, description: key === 'index' ? 'its number, from 0' : key })
  const id = key.endsWith('_id') ? key : thing.toLowerCase().replaceAll(' ', '_')
  const pattern = `^${prefix}_[0-7][0-9a-hjkmnp-tv-z]{25}$`
  return z.string().meta({ param: { id }, pattern, description: `id of the ${thing}: ${prefix}_…` })
}
