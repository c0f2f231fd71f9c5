import type { Basis } from '../basis.ts'
import type { Holders } from '../accounts/holders.ts'
import { iso } from '../core/clock.ts'
import { Fault } from '../core/fault.ts'
import { type Caller, may } from '../core/scopes.ts'
import type { Identities } from '../identities/identities.ts'
import { channels } from './channels.ts'
import { type ChannelName, channelNames, type RealtimeToken, type TokenInput } from './model.ts'
import { readToken, writeToken } from './tokens.ts'

/** The rights of a token, while its key or session is valid. */
export interface Grant {
  /** The key or session that created it. */
  holder_id: string
  /** The number of the key's secret; 0 for a session. */
  secret: number
  account_id: string
  /** The one identity it is bound to; null for the whole account. */
  identity_id: string | null
  /** The event types of each channel that it may subscribe to. */
  channels: ReadonlyMap<ChannelName, ReadonlySet<string>>
  /** The time until which it may connect and join, in milliseconds since the epoch. */
  expires_at: number
  /** The end of its key, that key's secret, its session, or its identity; Infinity for never. */
  until: number
}

interface Deps extends Pick<Basis, 'clock' | 'types' | 'publicUrl'> {
  holders: Holders
  identities: Identities
  tokenKey: Buffer
}

/** A token whose rights are being read. */
interface Opening extends Pick<Grant, 'holder_id' | 'identity_id'> {
  /** Its key, session or identity changed meanwhile. */
  changed: boolean
}

/** Creates tokens and verifies them: a token never has more rights than its key or session has now. */
export class Access {
  readonly #deps: Deps
  readonly #openings = new Set<Opening>()

  constructor(deps: Deps) {
    this.#deps = deps
  }

  /** Throws Fault: forbidden for a channel without its scope, not_found for an identity that the key may not access. */
  async token(caller: Caller, input: TokenInput): Promise<RealtimeToken> {
    const { clock, identities, tokenKey, publicUrl } = this.#deps
    const holder_id = caller.key_id ?? caller.session_id
    if (holder_id === null)
      throw new Fault('forbidden', 'A token can be created only with an API key or a session, and ends with it.')
    const identityId = input.identity_id ?? caller.identity_id
    if (identityId !== null) await identities.row(caller, identityId)
    const readable = channelNames.filter((name) => may(caller, channels[name].scopes))
    const refused = input.channels?.find((name) => !readable.includes(name))
    if (refused !== undefined) {
      throw new Fault('forbidden', `The channel ${refused} requires the scope ${channels[refused].scopes.join(' or ')}.`, {
        code: 'missing_scope',
        param: 'channels',
      })
    }
    const expires_at = clock.now() + input.expires_in * 1000
    const { account_id, secret } = caller
    const granted = input.channels ?? readable
    const claims = { holder_id, secret, account_id, identity_id: identityId, channels: granted, expires_at }
    const url = publicUrl()
    return {
      token: writeToken(tokenKey, claims),
      expires_at: iso(expires_at),
      url: `${url.replace(/^http/, 'ws')}/v1/realtime`,
      frames: framesFor(granted[0]!, identityId),
      supabase_url: url,
    }
  }

  /** The current rights of a token. Throws Fault unauthorized: `invalid_token`, or `token_expired` for one that has expired. */
  async open(token: string): Promise<Grant> {
    const { clock, holders, types, tokenKey } = this.#deps
    const claims = readToken(tokenKey, token)
    if (!claims) throw new Fault('unauthorized', 'This is not a token of POST /v1/realtime/token.', { code: 'invalid_token' })
    if (claims.expires_at <= clock.now()) {
      throw new Fault('unauthorized', 'The token has expired. Get a new one.', { code: 'token_expired' })
    }
    const opening = { holder_id: claims.holder_id, identity_id: claims.identity_id, changed: false }
    this.#openings.add(opening)
    try {
      for (;;) {
        opening.changed = false
        const holder = await holders.holder(claims.holder_id, claims.secret)
        if (!holder) throw gone()
        const until = await this.#end(claims, holder).catch(rethrown)
        // what was read before a change must not be granted after it
        if (opening.changed) continue
        const seen = types.visibleTo(holder)
        const opened = claims.channels
          .filter((name) => may(holder, channels[name].scopes))
          .map((name) => [name, new Set(seen.filter((type) => channels[name].covers(type)))] as const)
        return { ...claims, channels: new Map(opened), until }
      }
    } finally {
      this.#openings.delete(opening)
    }
  }

  /** Reads the rights again that are being read of the keys and sessions that `includes` names: they changed. */
  someChanged(includes: (holderId: string) => boolean): void {
    for (const opening of this.#openings) opening.changed ||= includes(opening.holder_id)
  }

  /** Reads the rights again that are being read: this key, session or identity changed. */
  changed(id: string): void {
    for (const opening of this.#openings) opening.changed ||= opening.holder_id === id || opening.identity_id === id
  }

  /** How long a grant stays valid, computed again after its key, session or identity changed. */
  async until(grant: Grant): Promise<number> {
    const holder = await this.#deps.holders.holder(grant.holder_id, grant.secret)
    return holder ? this.#end(grant, holder).catch(absent) : 0
  }

  /** Throws Fault not_found unless the identity exists and belongs to the account of the grant. */
  async requireIdentity(grant: Grant, id: string): Promise<void> {
    await this.#deps.identities.row(grant, id)
  }

  /** The end of the holder, or of the identity that the token is bound to. */
  async #end(token: Pick<Grant, 'account_id' | 'identity_id'>, { until }: Pick<Caller, 'until'>): Promise<number> {
    if (token.identity_id === null) return until
    const { expires_at } = await this.#deps.identities.row(token, token.identity_id)
    return expires_at === null ? until : Math.min(until, Date.parse(expires_at))
  }
}

/** Examples of the frames of the plain protocol, which this token allows. */
function framesFor(channel: ChannelName, identityId: string | null): RealtimeToken['frames'] {
  const place = { channel, ...(identityId === null ? {} : { identity_id: identityId }) }
  return {
    subscribe: { type: 'subscribe', ...place },
    resume: { type: 'subscribe', ...place, since: 'evt_…' },
    unsubscribe: { type: 'unsubscribe', ...place },
    refresh: { type: 'refresh', token: 'rtt_…' },
    ping: { type: 'ping' },
  }
}

function gone(): Fault {
  return new Fault('unauthorized', 'The key or identity of this token no longer exists.', { code: 'invalid_token' })
}

/** What was deleted has ended. */
function absent(error: unknown): number {
  if (error instanceof Fault && error.type === 'not_found') return 0
  throw error
}

/** A token of a deleted identity is invalid; other errors are not the token's fault. */
function rethrown(error: unknown): never {
  throw error instanceof Fault && error.type === 'not_found' ? gone() : error
}
