import type { Basis } from '../basis.ts'
import { type Clock, day } from '../core/clock.ts'
import { Fault } from '../core/fault.ts'
import type { UpgradeRequest } from '../http/server/upgrades.ts'
import { ConnectionLimiter } from '../net/connection-limiter.ts'
import { networksOf } from '../net/networks.ts'
import type { Access, Grant } from './access.ts'
import { Socket, type SocketDeps, type SocketSession } from './socket.ts'
import { UnsentLimiter } from './unsent.ts'

/** A session whose lifetime `Sockets` manages. */
export interface ManagedSession extends SocketSession {
  readonly socket: Socket
  /** Its valid grants; without any it counts for the networks of its address. */
  readonly grants: Iterable<Grant>
  /** The time it last gave a token, in milliseconds since the epoch. */
  readonly tokenAt: number
  /** Ends the subscriptions of the identity. */
  identityDeleted(id: string): void
}

interface SocketLimits {
  max_sockets: number
  max_sockets_per_key: number
  max_sockets_per_account: number
}

interface Deps extends Pick<Basis, 'clock' | 'log' | 'metrics'> {
  access: Access
  limits: SocketLimits
}

/** What a socket without a token counts for. */
interface Stranger {
  /** Its widest network, which its unsent frames count for. */
  network: string
  /** Ends its count. */
  leave: () => void
}

/** Milliseconds of silence before a ping, and from the ping until a socket that still says nothing is cut. */
const heartbeat = { ping: 25_000, timeout: 35_000 }

/** Sockets without a valid token: their timeout, the most of one IPv4 address or IPv6 /64, and their share of all sockets. */
const unauthenticated = { timeout: 30_000, most: 20, share: 0.2 }

/** Every open socket: their limits, and their lifetimes. */
export class Sockets {
  readonly #access: Access
  readonly #clock: Clock
  readonly #sessions = new Map<Socket, ManagedSession>()
  /** The sockets of each key, session and account. */
  readonly #held = new Map<string, Set<Socket>>()
  readonly #strangers = new ConnectionLimiter(() => ({
    max_connections: Math.max(1, this.#limits.max_sockets * unauthenticated.share),
    max_connections_per_address: unauthenticated.most,
  }))
  /** What each socket without a token counts for. */
  readonly #unauthenticated = new Map<Socket, Stranger>()
  readonly #socketDeps: SocketDeps
  #limits: SocketLimits
  #timer: NodeJS.Timeout | undefined

  constructor({ access, clock, log, metrics, limits }: Deps) {
    this.#access = access
    this.#clock = clock
    this.#limits = limits
    const frames = metrics.counter('pillarbox_realtime_frames_total', 'Frames sent to WebSockets.')
    const slow = metrics.counter('pillarbox_realtime_slow_total', 'WebSockets closed because their client did not read.')
    metrics.gauge('pillarbox_realtime_sockets', 'Open WebSockets', (gauge) => gauge.set(this.#sessions.size))
    metrics.gauge('pillarbox_realtime_waiting_bytes', 'Bytes buffered for clients that do not read', (gauge) => {
      let waiting = 0
      for (const socket of this.#sessions.keys()) waiting += socket.waiting
      gauge.set(waiting)
    })
    this.#socketDeps = {
      now: () => clock.now(),
      limiter: new UnsentLimiter(),
      ownerOf: (socket) => [...socket.holders].find(isAccount) ?? this.#unauthenticated.get(socket)?.network ?? '',
      closeIfEnded: (socket) => this.#closeIfEnded(this.#sessions.get(socket)),
      sent: () => frames.inc(),
      slow: () => slow.inc(),
      failed: (error) => log.error({ err: error }, 'WebSocket failed with an internal error'),
      closed: (socket) => this.#remove(socket),
    }
  }

  start(): void {
    this.#timer = setInterval(() => this.#sweep(), 1000).unref()
  }

  reload(limits: SocketLimits): void {
    this.#limits = limits
  }

  /**
   * Opens a socket that counts for the grant's key or session, and account; without a grant for the networks of its address. Throws Fault
   * rate_limited at a limit.
   */
  accept(arrival: UpgradeRequest, grant: Grant | undefined, begin: (socket: Socket) => ManagedSession): void {
    if (this.#sessions.size >= this.#limits.max_sockets) throw full('The maximum number of WebSockets is open')
    const holders = grant ? holdersOf(grant) : []
    for (const holder of holders) this.#requireCapacity(holder)
    const stranger = grant ? undefined : this.#admit(arrival.address)
    let session: ManagedSession
    try {
      session = Socket.accept(arrival, begin, this.#socketDeps)
    } catch (error) {
      stranger?.leave()
      throw error
    }
    this.#sessions.set(session.socket, session)
    if (stranger) this.#unauthenticated.set(session.socket, stranger)
    for (const holder of holders) this.#add(session.socket, holder)
  }

  /** Counts the socket for the grant's key or session, and account, from now on. Throws Fault rate_limited at a limit. */
  hold(socket: Socket, grant: Grant): void {
    const fresh = holdersOf(grant).filter((holder) => !socket.holders.has(holder))
    for (const holder of fresh) this.#requireCapacity(holder)
    this.#authenticated(socket)
    for (const holder of fresh) this.#add(socket, holder)
  }

  /** Re-checks the grants of a changed key or session. Frames of their sockets wait for the result. */
  async holderChanged(holderId: string): Promise<void> {
    this.#access.changed(holderId)
    const sessions = [...(this.#held.get(holderId) ?? [])].map((socket) => this.#sessions.get(socket)!)
    await this.#renew(sessions, (grant) => grant.holder_id === holderId)
  }

  /** Re-checks the grants of an identity that may end at another time. */
  async identityChanged(id: string): Promise<void> {
    this.#access.changed(id)
    // every change of an identity comes here, and most sockets are of others
    const concerned = new Set<ManagedSession>()
    for (const session of this.#sessions.values())
      for (const { identity_id } of session.grants) if (identity_id === id) concerned.add(session)
    await this.#renew([...concerned], ({ identity_id }) => identity_id === id)
  }

  /** Re-checks the grants of these keys and sessions: some of them changed. */
  async someChanged(includes: (holderId: string) => boolean): Promise<void> {
    this.#access.someChanged(includes)
    const sessions = [...this.#sessions.values()].filter(({ grants }) => [...grants].some((grant) => includes(grant.holder_id)))
    await this.#renew(sessions, (grant) => includes(grant.holder_id))
  }

  identityDeleted(id: string): void {
    this.#access.changed(id)
    for (const session of this.#sessions.values()) {
      session.identityDeleted(id)
      for (const grant of session.grants) if (grant.identity_id === id) session.socket.close(4410, 'the identity was deleted')
    }
  }

  /** Closes every socket. */
  close(): void {
    clearInterval(this.#timer)
    for (const socket of this.#sessions.keys()) socket.close(1001, 'the box is stopping; reconnect and resume with since')
  }

  #sweep(): void {
    const now = this.#clock.now()
    for (const session of this.#sessions.values()) {
      const { socket } = session
      if (socket.pingSentAt !== undefined && now - socket.pingSentAt >= heartbeat.timeout) socket.cut()
      else if (socket.pingSentAt === undefined && now - socket.lastFrameAt >= heartbeat.ping) socket.ping()
      this.#closeIfEnded(session)
    }
  }

  async #renew(sessions: readonly ManagedSession[], isChanged: (grant: Grant) => boolean): Promise<void> {
    // all at once: each is read later than the one before
    for (const { socket } of sessions) socket.suspend()
    // many sockets may be of one key
    const ends = new Map<string, Promise<number>>()
    const endOf = (grant: Grant): Promise<number> => {
      const what = `${grant.holder_id} ${grant.secret} ${grant.account_id} ${grant.identity_id}`
      const end = ends.get(what) ?? this.#access.until(grant)
      ends.set(what, end)
      return end
    }
    for (const session of sessions) {
      for (const grant of session.grants) {
        if (!isChanged(grant)) continue
        grant.until = await endOf(grant).catch((error: unknown) => {
          // a changed key that cannot be read again grants nothing
          this.#socketDeps.failed(error)
          return 0
        })
        this.#closeIfEnded(session)
      }
      session.socket.resume()
    }
  }

  /** A socket that is being opened has no session yet. */
  #closeIfEnded(session: ManagedSession | undefined): void {
    if (!session?.socket.open) return
    const { socket, grants, tokenAt } = session
    const now = this.#clock.now()
    let known = false
    for (const grant of grants) {
      known = true
      if (grant.until <= now) socket.close(4401, 'the API key, session or identity of the token has ended')
    }
    if (!known && now - socket.openedAt >= unauthenticated.timeout) socket.close(4401, 'no valid token was sent')
    if (now - tokenAt >= day) socket.close(4401, 'the connection is a day old; reconnect with a new token')
  }

  #admit(address: string): Stranger {
    const leave = this.#strangers.admit(address)
    if (leave === 'server_full') throw full('The maximum number of WebSockets without a token is open')
    if (leave === 'network_full') throw full('The maximum number of WebSockets without a token is open from this network')
    return { leave, network: networksOf(address).at(-1)! }
  }

  #requireCapacity(holder: string): void {
    const { max_sockets_per_account, max_sockets_per_key } = this.#limits
    const [most, whose] = isAccount(holder) ? [max_sockets_per_account, 'account'] : [max_sockets_per_key, 'key or session']
    if ((this.#held.get(holder)?.size ?? 0) >= most) throw full(`At most ${most} WebSockets can be open with one ${whose}`)
  }

  #add(socket: Socket, holder: string): void {
    socket.holders.add(holder)
    const sockets = this.#held.get(holder) ?? new Set()
    this.#held.set(holder, sockets.add(socket))
  }

  #authenticated(socket: Socket): void {
    this.#unauthenticated.get(socket)?.leave()
    this.#unauthenticated.delete(socket)
  }

  #remove(socket: Socket): void {
    this.#sessions.delete(socket)
    this.#authenticated(socket)
    for (const holder of socket.holders) {
      const sockets = this.#held.get(holder)!
      sockets.delete(socket)
      if (sockets.size === 0) this.#held.delete(holder)
    }
  }
}

function holdersOf({ holder_id, account_id }: Grant): string[] {
  return [holder_id, `account ${account_id}`]
}

function isAccount(holder: string): boolean {
  return holder.startsWith('account ')
}

function full(what: string): Fault {
  return new Fault('rate_limited', `${what}. Close one, or try again later.`, { code: 'too_many_sockets', retryAfter: 10 })
}
