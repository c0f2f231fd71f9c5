import { readdirSync, readFileSync } from 'node:fs'

/** What a process and all its descendants have used. */
export interface Usage {
  /** User and system time in microseconds, that of ended children included; the kernel counts in steps of 10 ms. */
  cpu: number
  /** Peak resident memory in MiB, summed over the processes alive now. */
  peak: number
  /** Resident memory now in MiB, summed. */
  resident: number
}

const tick = 10_000

/** Asks the kernel (Linux, /proc) about a process and its descendants. */
export function usageOf(root: number): Usage {
  const usage: Usage = { cpu: 0, peak: 0, resident: 0 }
  for (const id of treeOf(root)) {
    const stat = statOf(id)
    if (!stat) continue
    usage.cpu += (stat.user + stat.system + stat.childUser + stat.childSystem) * tick
    usage.peak += memoryOf(id, 'VmHWM')
    usage.resident += memoryOf(id, 'VmRSS')
  }
  return usage
}

/** The process and all its descendants, parents before children. */
export function treeOf(root: number): number[] {
  const children = new Map<number, number[]>()
  for (const name of readdirSync('/proc')) {
    const id = Number(name)
    const parent = Number.isInteger(id) ? statOf(id)?.parent : undefined
    if (parent !== undefined) children.set(parent, [...(children.get(parent) ?? []), id])
  }
  const found = [root]
  for (let at = 0; at < found.length; at++) found.push(...(children.get(found[at]!) ?? []))
  return found
}

interface Stat {
  parent: number
  user: number
  system: number
  childUser: number
  childSystem: number
}

function statOf(id: number): Stat | undefined {
  const text = read(id, 'stat')
  if (text === undefined) return undefined
  // the name may hold anything, so the fields are counted from its end (proc(5))
  const fields = text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number)
  return { parent: fields[1]!, user: fields[11]!, system: fields[12]!, childUser: fields[13]!, childSystem: fields[14]! }
}

function memoryOf(id: number, field: 'VmHWM' | 'VmRSS'): number {
  const found = new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(read(id, 'status') ?? '')
  return found ? Number(found[1]) / 1024 : 0
}

/** A process may be gone between the listing and the look. */
function read(id: number, name: string): string | undefined {
  try {
    return readFileSync(`/proc/${id}/${name}`, 'utf8')
  } catch {
    return undefined
  }
}
