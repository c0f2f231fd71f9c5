import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { run, succeed } from './program.ts'

/** Network namespaces with one address each, on a bridge in another: all of it is apart from the network of this machine. */
export interface Namespaces {
  /** What runs a program in one of them: its first words. */
  in(name: string): string[]
  /** Takes the cable of one out, or puts it back. */
  connect(name: string, isConnected: boolean): Promise<void>
  /** Ends what runs in them, and removes them. */
  close(): Promise<void>
}

/** The namespaces of this name, made by another process. */
export function namespacesOf(prefix: string, names: readonly string[]): Namespaces {
  return {
    in: (name) => ['ip', 'netns', 'exec', `${prefix}-${name}`],
    connect: async (name, isConnected) =>
      void (await succeed('ip', ['-n', `${prefix}-bridge`, 'link', 'set', name, isConnected ? 'up' : 'down'])),
    async close() {
      for (const name of names) {
        const { output } = await run('ip', ['netns', 'pids', `${prefix}-${name}`])
        for (const pid of output.toString().split('\n').filter(Boolean)) {
          try {
            process.kill(Number(pid), 'SIGKILL')
          } catch {
            // it has ended
          }
        }
      }
      for (const name of [...names, 'bridge']) {
        await run('ip', ['netns', 'del', `${prefix}-${name}`])
        rmSync(`/etc/netns/${prefix}-${name}`, { recursive: true, force: true })
      }
    },
  }
}

/** Creates them; `hosts` are the names that one of them knows besides its own. Throws, with the reason, where the system refuses. */
export async function createNamespaces(
  prefix: string,
  addresses: Record<string, string[]>,
  hosts: Record<string, string> = {},
): Promise<Namespaces> {
  const namespaces = namespacesOf(prefix, Object.keys(addresses))
  const hub = `${prefix}-bridge`
  try {
    await succeed('ip', ['netns', 'add', hub])
    await succeed('ip', ['-n', hub, 'link', 'add', 'bridge', 'type', 'bridge'])
    await succeed('ip', ['-n', hub, 'link', 'set', 'bridge', 'up'])
    for (const [name, own] of Object.entries(addresses)) {
      const namespace = `${prefix}-${name}`
      await succeed('ip', ['netns', 'add', namespace])
      await succeed('ip', ['-n', hub, 'link', 'add', name, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', namespace])
      await succeed('ip', ['-n', hub, 'link', 'set', name, 'master', 'bridge', 'up'])
      for (const address of own) {
        // an IPv6 address is else no good for the first second
        const flags = address.includes(':') ? ['nodad'] : []
        await succeed('ip', ['-n', namespace, 'address', 'add', address, 'dev', 'eth0', ...flags])
      }
      for (const device of ['lo', 'eth0']) await succeed('ip', ['-n', namespace, 'link', 'set', device, 'up'])
      // `ip netns exec` puts this file in the place of that of the machine
      mkdirSync(`/etc/netns/${namespace}`, { recursive: true })
      const lines = Object.entries({ localhost: '127.0.0.1', ...hosts }).map(([host, address]) => `${address} ${host}\n`)
      writeFileSync(`/etc/netns/${namespace}/hosts`, lines.join(''))
    }
    return namespaces
  } catch (error) {
    await namespaces.close()
    const why = 'Network namespaces cannot be created: this needs root (CAP_SYS_ADMIN and CAP_NET_ADMIN), bridge and veth'
    throw new Error(why, { cause: error })
  }
}
