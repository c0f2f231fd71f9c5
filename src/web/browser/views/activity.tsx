import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { Identity, WhoAmI } from '../../../identities/model.ts'
import type { HoldRow } from '../../../policy/model.ts'
import { listen, type LiveEvent } from '../live.ts'
import { eventsOf, type Listed, useList, useResource } from '../loaded.ts'
import { Link } from '../router.tsx'
import { filledIn, Form, Select } from '../widgets/form.tsx'
import { Mark, Time } from '../widgets/format.tsx'
import { IdentityField, IdentityName } from '../widgets/identity-field.tsx'
import { Rows } from '../widgets/listing.tsx'

const failures = [
  'email.bounced',
  'email.failed',
  'email.complained',
  'sms.failed',
  'webhook.disabled',
  'domain.failed',
  'certificate.failed',
]

const decisions = ['held', 'approved', 'rejected', 'expired']

/** What can be chosen, and the event types of each. */
const subjects: Record<string, string[]> = {
  mail: [
    'email.received',
    'email.released',
    'email.queued',
    'email.sent',
    'email.delivered',
    'email.deferred',
    'email.cancelled',
  ],
  'text messages': ['sms.received', 'sms.sent', 'sms.delivered'],
  'one-time passwords': ['totp.created', 'totp.deleted', 'totp.read'],
  'reveals of cards': ['card.revealed'],
  'reveals of logins': ['login.revealed'],
  holds: ['email', 'sms', 'card', 'login'].flatMap((kind) => decisions.map((decision) => `${kind}.${decision}`)),
  failures,
}

const nouns: Record<string, string> = { email: 'Mail', sms: 'Text message', totp: 'One-time password' }

const pageSize = 30

/** The most events shown of those that came while the view was open; older ones are read again on demand. */
const maxLive = 500

interface Filter {
  identity_id?: string
  types?: string
}

type Named = Pick<Identity, 'id' | 'name'>

/** The start page: what all agents are doing, and what waits for a person. */
export function View(): JSX.Element {
  const [filter, setFilter] = useState<Filter>({})
  const identities = useList<Named>('/v1/identities', { limit: 100 }, eventsOf('identity.'))
  return (
    <>
      <h1>Activity</h1>
      <Pending identities={identities} />
      <Form submit="Filter" label="Filter the activity" send={async (typed) => setFilter(filledIn(typed))}>
        <IdentityField label="Identity" none="every identity" />
        <Select name="types" label="What">
          <option value="">everything</option>
          {Object.entries(subjects).map(([words, types]) => (
            <option key={words} value={types.join(',')}>
              {words}
            </option>
          ))}
        </Select>
      </Form>
      <Stream key={JSON.stringify(filter)} filter={filter} identities={identities} />
    </>
  )
}

/** What the person is to do or to know first. */
function Pending({ identities: { value } }: { identities: Listed<Named> }): JSX.Element {
  const { value: caller } = useResource<WhoAmI>('/v1/whoami', eventsOf('domain.'))
  const holds = useList<HoldRow>('/v1/holds', { status: 'open' }, ({ data }) => Boolean(data['hold']))
  const count = holds.value?.length ?? 0
  return (
    <>
      {value?.length === 0 && (
        <p>
          No identity yet. Each has a name and an address that receives mail. <Link href="/identities">Create the first</Link>
        </p>
      )}
      {caller?.can_send_outside === false && <p class="hint">{caller.cannot_send_outside_reason}</p>}
      {count > 0 && (
        <p role="status">
          <Link href="/holds">
            {count}
            {holds.hasMore && ' or more'} held
          </Link>
          , waiting for a decision
        </p>
      )}
    </>
  )
}

/** Events, newest first. They are read once, as each reading is in the audit log; later ones come live. */
function Stream({ filter, identities }: { filter: Filter; identities: Listed<Named> }): JSX.Element {
  const { identity_id, types } = filter
  const list = useList<LiveEvent>('/v1/events', { ...filter, limit: pageSize })
  const names = new Map(identities.value?.map(({ id, name }) => [id, name]))
  const [live, setLive] = useState<LiveEvent[]>([])
  useEffect(
    () =>
      listen((event) => {
        // the list is read again, without what was deleted
        if (event === undefined) return setLive([])
        if (identity_id !== undefined && event.identity_id !== identity_id) return
        if (types !== undefined && !types.split(',').includes(event.type)) return
        setLive((before) => [event, ...before].slice(0, maxLive))
      }),
    [identity_id, types],
  )
  const read = new Set(list.value?.map(({ id }) => id))
  // older than one that was read again, it was read too, or has been deleted
  const known = live.findIndex(({ id }) => read.has(id))
  const newer = known === -1 ? live : live.slice(0, known)
  // some may be missing between as many as are kept and those that were read
  const full = newer.length === maxLive
  const value = list.value && (full ? newer : [...newer, ...list.value])
  // what came live is read again as well
  const more = (): Promise<void> => list.more(1 + Math.ceil(newer.length / pageSize))
  return (
    <Rows list={{ ...list, value, hasMore: full || list.hasMore, more }} empty="Nothing yet.">
      {(event) => <Line event={event} name={names.get(event.identity_id ?? '')} />}
    </Rows>
  )
}

function Line({ event, name }: { event: LiveEvent; name: string | undefined }): JSX.Element {
  const { type, identity_id, created_at } = event
  const [kind = '', what = ''] = type.split('.')
  const noun = nouns[kind] ?? kind.charAt(0).toUpperCase() + kind.slice(1)
  const words = `${noun} ${what.replaceAll('_', ' ')}`
  const href = linkOf(event)
  return (
    <li>
      <span class="grow breaks">
        {href === undefined ? <strong>{words}</strong> : <Link href={href}>{words}</Link>}{' '}
        {identity_id !== null &&
          (name === undefined ? (
            <IdentityName id={identity_id} />
          ) : (
            <Link href={`/identities/${identity_id}/inbox`}>{name}</Link>
          ))}
        <br />
        <span class="faint">{summaryOf(event)}</span>
      </span>
      {failures.includes(type) && <Mark tone="bad">failure</Mark>}
      {what === 'received' && Array.isArray(event.data['codes']) && event.data['codes'].length > 0 && <Mark>one-time code</Mark>}
      {what === 'held' && <Mark tone="warn">held</Mark>}
      <Time at={created_at} />
    </li>
  )
}

/** Deleted messages have no data left. */
function summaryOf({ data }: LiveEvent): string {
  const peer = data['direction'] === 'inbound' ? data['from'] : data['to']
  const texts = [peer, data['subject'] ?? data['body'] ?? data['label'] ?? data['handle'] ?? data['name']]
  return texts
    .filter((one) => typeof one === 'string' && one !== '')
    .join(': ')
    .slice(0, 200)
}

function linkOf({ type, identity_id, data }: LiveEvent): string | undefined {
  const hold = data['hold'] as { id: string } | null | undefined
  if (hold) return `/holds/${hold.id}`
  if (identity_id === null) return undefined
  const path = `/identities/${identity_id}`
  const { thread_id } = data
  if (typeof thread_id === 'string') return `${path}/inbox/${thread_id}`
  if (type.startsWith('sms.')) return `${path}/sms`
  if (type.startsWith('card.')) return `${path}/cards`
  return type.startsWith('totp.') ? `${path}/totp` : undefined
}
