import { execFileSync } from 'node:child_process'
import { closeSync, openSync, readSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Calls as disk.c counts them, in its order. */
export const calls = ['open', 'write', 'sync', 'truncate', 'rename', 'unlink', 'read'] as const
export type Call = (typeof calls)[number]

/** Why nothing can be preloaded here; undefined where it can. */
export function noPreload(): string | undefined {
  if (process.platform !== 'linux') return 'its recorder is for Linux'
  try {
    execFileSync('cc', ['--version'], { stdio: 'pipe' })
    return undefined
  } catch {
    return 'there is no C compiler (on Debian: apt install gcc libc6-dev)'
  }
}

/** Compiles a library that is preloaded; answers its path. */
export function compilePreload(directory: string, source = new URL('disk.c', import.meta.url)): string {
  const library = join(directory, 'preload.so')
  execFileSync('cc', ['-shared', '-fPIC', '-O2', '-Wall', '-Werror', '-o', library, fileURLToPath(source), '-ldl', '-lpthread'])
  return library
}

/** The environment of a box whose files below `root` are recorded, or fail. */
export function preloadEnv(
  library: string,
  root: string,
  {
    recording,
    control,
    syncDelay = 0,
    kill,
  }: { recording?: string; control?: string; syncDelay?: number; kill?: KillAt | undefined },
): Record<string, string> {
  return {
    LD_PRELOAD: library,
    DISK_ROOT: root,
    // what the kernel does by itself, without a call of the C library, is not seen
    UV_USE_IO_URING: '0',
    ...(recording === undefined ? {} : { DISK_RECORDING: recording }),
    ...(control === undefined ? {} : { DISK_CONTROL: control }),
    ...(syncDelay === 0 ? {} : { DISK_SYNC_MICROSECONDS: String(syncDelay) }),
    ...(kill === undefined ? {} : { DISK_KILL: `${kill.call} ${kill.at} ${kill.text}` }),
  }
}

/** The call at which a box is killed: before it sends, writes or renames, or after it has received. */
export interface KillAt {
  call: 'send' | 'receive' | 'write' | 'rename'
  /** The first that counts, the second, and so on. */
  at: number
  /** Part of what is sent or received, or of the new path; all count where it is empty. */
  text: string
}

/** A call that fails. */
export interface Failing {
  call: Call
  /** The first that fails, counted from 1. */
  at: number
  /** The number of the error on Linux. */
  error: number
  /** So do all calls of the kind that follow. */
  permanent: boolean
  /** Of the first write that fails, half is done. */
  half: boolean
}

/** The memory that disk.c shares: counts of calls, and which of them fails. */
export class DiskControl {
  readonly file: string
  readonly #handle: number

  constructor(file: string) {
    this.file = file
    writeFileSync(file, Buffer.alloc(size))
    this.#handle = openSync(file, 'r+')
  }

  /** Counts anew, and fails from here on. */
  fail(failing: Failing): void {
    const bytes = Buffer.alloc(size)
    const offset = calls.length * 8
    bytes.writeBigInt64LE(BigInt(failing.at), offset)
    bytes.writeInt32LE(calls.indexOf(failing.call), offset + 16)
    bytes.writeInt32LE(failing.error, offset + 20)
    bytes.writeInt32LE(Number(failing.permanent), offset + 24)
    bytes.writeInt32LE(Number(failing.half), offset + 28)
    writeSync(this.#handle, bytes, 0, size, 0)
  }

  /** Nothing fails any more. */
  recover(): void {
    writeSync(this.#handle, Buffer.alloc(8), 0, 8, calls.length * 8)
  }

  counts(): Record<Call, number> {
    const bytes = this.#read()
    return Object.fromEntries(calls.map((call, index) => [call, Number(bytes.readBigInt64LE(index * 8))])) as Record<Call, number>
  }

  /** How many calls have failed. */
  get failed(): number {
    return Number(this.#read().readBigInt64LE(calls.length * 8 + 8))
  }

  close(): void {
    closeSync(this.#handle)
  }

  #read(): Buffer {
    const bytes = Buffer.alloc(size)
    readSync(this.#handle, bytes, 0, size, 0)
    return bytes
  }
}

const size = calls.length * 8 + 16 + 16
