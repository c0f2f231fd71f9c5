import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

let collector: (() => void) | undefined

/** Collects the garbage of this thread, which stands still for as long as that takes: not for the main thread. */
export function collect(): void {
  if (!collector) {
    setFlagsFromString('--expose-gc')
    collector = runInNewContext('gc') as () => void
  }
  collector()
}
