import { type Holders, isSession } from '../accounts/holders.ts'
import { Fault, invalid } from '../core/fault.ts'
import { PacedWork } from '../core/work/paced-work.ts'
import { type AnyRoute, routeOf } from '../http/route.ts'
import type { UpgradeRequest } from '../http/server/upgrades.ts'
import type { Identities } from '../identities/identities.ts'
import type { Module, ModuleBasis } from '../module.ts'
import { Access } from './access.ts'
import { Filters } from './filters.ts'
import { Hub } from './hub.ts'
import { PatternQueue } from './pattern-queue.ts'
import { type PlainDeps, PlainSession } from './plain.ts'
import { Sockets } from './sockets.ts'
import { StoredFrames } from './stored-frames.ts'
import type { Version } from './supabase/phoenix.ts'
import { type SupabaseDeps, SupabaseSession } from './supabase/supabase.ts'
import { isToken } from './tokens.ts'
import { RealtimeToken, TokenInput } from './model.ts'

interface Deps extends ModuleBasis {
  holders: Holders
  identities: Identities
  tokenKey: Buffer
}

/** Live events over WebSocket: tokens, and the two protocols that accept them. */
export function realtimeModule(deps: Deps): Module {
  const { events, clock, holders, log, metrics, config } = deps
  const access = new Access(deps)
  const sockets = new Sockets({ access, clock, log, metrics, limits: config.realtime })
  const notRead = (error: unknown): void => log.error({ err: error }, 'changed key or session could not be read')
  const hub = new Hub(events, {
    // watchers of the identity get its deletion before the socket is closed
    passed: ({ type, identity_id }) => {
      if (identity_id === null) return
      if (type === 'identity.deleted') sockets.identityDeleted(identity_id)
      else if (type === 'identity.updated') sockets.identityChanged(identity_id).catch(notRead)
    },
    failed: (error) => log.error({ err: error }, 'WebSocket could not be notified'),
  })
  holders.onChange((id) => {
    sockets.holderChanged(id).catch(notRead)
  })
  const { caches } = deps.database
  caches.onInvalid('keys', () => void sockets.someChanged((holderId) => !isSession(holderId)).catch(notRead))
  caches.onInvalid('sessions', () => void sockets.someChanged(isSession).catch(notRead))
  const hold: Sockets['hold'] = (socket, grant) => sockets.hold(socket, grant)
  const paced = new PacedWork()
  const failed = (error: unknown): void => log.error({ err: error }, 'event could not be sent to a WebSocket')
  const patterns = new PatternQueue({ paced, events, failed })
  const [stored, filters] = [new StoredFrames(events), new Filters(paced)]
  const { types } = deps
  const sessionDeps = { access, events, hub, clock, types, hold, patterns, stored, filters }
  const close = (): void => sockets.close()
  return {
    name: 'realtime',
    routes: routes(access),
    upgrades: [
      { path: '/v1/realtime', close, handle: (arrival) => acceptPlain(arrival, sockets, sessionDeps) },
      { path: '/realtime/v1/websocket', close, handle: (arrival) => acceptSupabase(arrival, sockets, sessionDeps) },
    ],
    start: async () => sockets.start(),
    reload: (next) => sockets.reload(next.realtime),
  }
}

async function acceptPlain(arrival: UpgradeRequest, sockets: Sockets, deps: PlainDeps): Promise<void> {
  const offered = (arrival.request.headers['sec-websocket-protocol'] ?? '').split(',').map((text) => text.trim())
  const token = arrival.query['token'] ?? offered.find(isToken)
  if (token === undefined) {
    throw new Fault('unauthorized', 'A token is required: ?token=, or as a subprotocol after pillarbox.v1.', {
      code: 'missing_token',
    })
  }
  const grant = await deps.access.open(token)
  sockets.accept(arrival, grant, (socket) => new PlainSession(socket, grant, deps))
}

/** Any `apikey` may connect, as the token may come with the join; a client without a token is disconnected after a timeout. */
async function acceptSupabase(arrival: UpgradeRequest, sockets: Sockets, deps: SupabaseDeps): Promise<void> {
  const { apikey, vsn = '1.0.0' } = arrival.query
  if (apikey === undefined || apikey === '') throw new Fault('unauthorized', 'API key is missing', { code: 'missing_token' })
  if (!isVersion(vsn)) throw invalid('vsn', 'vsn must be 1.0.0 or 2.0.0.')
  const grant = isToken(apikey) ? await deps.access.open(apikey).catch(absent) : undefined
  sockets.accept(arrival, grant, (socket) => new SupabaseSession(socket, { version: vsn, apikey, grant }, deps))
}

function isVersion(text: string): text is Version {
  return text === '1.0.0' || text === '2.0.0'
}

/** A client reconnects with its original URL, whose token may have expired: the join decides. */
function absent(error: unknown): undefined {
  if (!(error instanceof Fault)) throw error
}

function routes(access: Access): AnyRoute[] {
  return [
    routeOf('Realtime')('POST', '/realtime/token', {
      // additional events of a channel require their own scopes
      scope: ['messages:read', 'emails:read', 'sms:read'],
      sdk: 'realtime.token',
      errors: { 403: ['missing_scope'], 404: ['not_found'] },
      audit: { action: 'realtime_token.created', target: () => null, read: true },
      summary: 'Get a token for a WebSocket',
      description:
        'It allows what the key may read, or less, and ends with the key. Expiry applies to connecting and subscribing; existing subscriptions continue.',
      body: TokenInput,
      reply: RealtimeToken,
      secret: true,
      example: { body: { channels: ['email_messages'], expires_in: 60 } },
      handle: ({ caller, body }) => access.token(caller, body),
    }),
  ]
}
