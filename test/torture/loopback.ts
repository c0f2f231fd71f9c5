import { Socket } from 'node:net'

/** Throws an Error unless an address, or the host of a URL, is of this machine alone. */
export function mustBeLoopback(host: string): void {
  if (/^127(?:\.\d{1,3}){3}$/.test(host) || host === '::1' || host === '[::1]' || host === 'localhost') return
  throw new Error(`A trial talks to this machine alone, not to ${host}.`)
}

/** From here on every TCP connection of this process to another machine throws. */
export function refuseOtherMachines(): void {
  const connect = Reflect.get(Socket.prototype, 'connect') as (...given: unknown[]) => Socket
  Socket.prototype.connect = function connectHere(this: Socket, ...given: unknown[]) {
    // Node hands its own calls over as one array
    const parameters = Array.isArray(given[0]) ? (given[0] as unknown[]) : given
    const [first, second] = parameters
    const options = typeof first === 'object' && first !== null ? (first as { host?: string; path?: string }) : undefined
    const host = options === undefined ? second : options.host
    if (options?.path === undefined && typeof host === 'string') mustBeLoopback(host)
    return Reflect.apply(connect, this, given)
  }
}
