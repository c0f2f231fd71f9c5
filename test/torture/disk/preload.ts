import { execFileSync } from 'node:child_process'
import { closeSync, openSync, readSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Calls as disk.c counts them, in its order. */
export const calls = [
  'open',
  'write',
  'pwrite',
  'fsync',
  'fdatasync',
  'truncate',
  'rename',
  'link',
  'unlink',
  'mkdir',
  'close',
  'read',
  'open to read',
] as const
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
  /** The number of the error on Linux; 0 for none. */
  error: number
  /** So do all calls of the kind that follow. */
  permanent: boolean
  /** A write is cut short instead: the first alone, and those that follow fail, or each of them where there is no error. */
  cut?: Cut
}

/** What is done of a write: its first byte, half of it, or all but its last byte; as disk.c numbers them from 1. */
export const cuts = ['one', 'half', 'most'] as const
export type Cut = (typeof cuts)[number]

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
    bytes.writeInt32LE(failing.cut === undefined ? 0 : cuts.indexOf(failing.cut) + 1, offset + 28)
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
