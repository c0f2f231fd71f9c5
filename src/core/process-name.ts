import { writeFileSync } from 'node:fs'

/**
 * Gives this process the name that `ps -o comm`, `ss -p` and `top` list, of which Linux keeps 15 bytes (proc_pid_comm(5)); else it is Node's
 * own, `MainThread`. The command line stays as it is, as `process.title` would not let it.
 */
export function nameProcess(name: string): void {
  try {
    writeFileSync('/proc/self/comm', name)
  } catch {
    // a container may hide /proc: the name is for people only
  }
}
