import type { Socket } from 'node:net'
import { release } from '../core/memory.ts'
import { networkOf } from './networks.ts'
import { type Kind, kindOf, readingTurns } from './reading-turns.ts'

/** Bytes that are read at once; and of a network that used no time lately. What has arrived is read 64 KiB at a time, and up to 2 MiB. */
const slice = { usual: 8 * 1024, first: 2 * 1024 }

/**
 * Reads what a client in the clear has sent in turns with other networks, in slices: a packet holds thousands of requests, chunks or frames. It takes the
 * place of two methods of the socket, which costs a hundredth of what a stream between would.
 */
export function readInTurns(socket: Socket): void {
  const network = networkOf(socket.remoteAddress ?? '')
  const push = socket.push.bind(socket)
  // oxlint-disable-next-line no-underscore-dangle -- of every stream
  const read = socket._read.bind(socket)
  let waiting = 0
  /** The kind of what waits. What follows has the same: of another it could be read before. */
  let kind: Kind = 'short'
  /** Bytes that were asked for while others waited. */
  let wanted: number | undefined
  /** What was read last asked for more. */
  let more = true
  const enter = (octets: Buffer | null): void => {
    waiting += 1
    readingTurns.enter(kind, network, () => {
      waiting -= 1
      more = !socket.destroyed && push(octets)
      if (waiting > 0 || wanted === undefined) return
      const size = wanted
      wanted = undefined
      if (!socket.destroyed) read(size)
    })
  }
  socket.push = (octets: Buffer | null, ...rest: []): boolean => {
    if (octets === null) {
      if (waiting === 0) return push(octets, ...rest)
      enter(octets)
      return false
    }
    const size = readingTurns.isIdle(network) ? slice.first : slice.usual
    if (waiting === 0) kind = kindOf(octets, network)
    // a part of a large body would keep the buffer of its packet until the next garbage collection
    const isLarge = octets.length > slice.usual
    for (let at = 0; at < octets.length; at += size) {
      const part = octets.subarray(at, at + size)
      enter(isLarge ? Buffer.from(part) : part)
    }
    if (isLarge) release(octets)
    // no more is read until these are; to stop for one would cost two system calls
    return waiting <= 1 && more
  }
  // oxlint-disable-next-line no-underscore-dangle -- of every stream
  socket._read = (size: number): void => {
    if (waiting === 0) read(size)
    else wanted = size
  }
}
