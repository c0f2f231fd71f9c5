import { spawnSync } from 'node:child_process'
import { Socket } from 'node:net'
import { networkInterfaces } from 'node:os'

/** What runs a program in a network namespace that has this machine's loopback interface alone. */
const [unshare, into] = ['/usr/bin/unshare', ['--net', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh']]

/** Whether this process, and so each one that it starts, can reach this machine alone. */
export function isApart(): boolean {
  return Object.values(networkInterfaces()).every((addresses) => addresses!.every(({ internal }) => internal))
}

/** Begins this process anew where it can reach this machine alone; answers why that cannot be. */
export function goApart(): string {
  if (process.getuid?.() !== 0) return 'A network namespace needs root.'
  const { status, stderr, error } = spawnSync(unshare, [...into, 'true'], { encoding: 'utf8' })
  if (status !== 0) return `No network namespace can be made: ${error?.message ?? stderr.trim()}.`
  return process.execve!(unshare, [unshare, ...into, process.execPath, ...process.execArgv, ...process.argv.slice(1)])
}

/** Throws an Error unless an address, or the host of a URL, is of this machine alone. */
export function mustBeLoopback(host: string): void {
  if (/^127(?:\.\d{1,3}){3}$/.test(host) || host === '::1' || host === '[::1]' || host === 'localhost') return
  throw new Error(`A trial talks to this machine alone, not to ${host}.`)
}

/** From here on every TCP connection of this process to another machine throws. Of other processes, and of UDP, it knows nothing. */
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
