import { chmodSync, chownSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../docs/pages.ts'
import type { Namespaces } from './namespaces.ts'
import { peer } from './peer.ts'
import { type BoxProcess, startProcess } from './process.ts'
import { run, succeed } from './program.ts'

const etcdServers = { proxy: '10.0.0.10', db1: '10.0.0.21', db2: '10.0.0.22' }
const servers = { db1: '10.0.0.21', db2: '10.0.0.22' }
export type Server = keyof typeof servers

const password = 'replace-this-one'

/** A cluster of PostgreSQL that Patroni keeps, by the example that we ship; only its directories are others. */
export interface Cluster {
  /** The server that is the primary; undefined while there is none, or two. */
  primary(): Promise<Server | undefined>
  /** True if each commit waits for the other server. */
  isSynchronous(): Promise<boolean>
  switchover(): Promise<void>
  /** Runs a script of the page on the primary, as the user postgres. */
  onPrimary(script: string): Promise<void>
  processes: BoxProcess[]
}

/** What runs a program as the user postgres. */
function asPostgres(home: string): string[] {
  return ['setpriv', '--reuid=postgres', '--regid=postgres', '--clear-groups', 'env', `HOME=${home}`]
}

/** Starts three servers of etcd and two of PostgreSQL; resolves when there is a primary with a synchronous standby. */
export async function startCluster(
  namespaces: Namespaces,
  directory: string,
  blocks: { etcd: string; certificate: string },
): Promise<Cluster> {
  for (const program of ['etcd', 'patroni']) {
    if (peer(program, 'apt-get install etcd-server patroni') === undefined) throw new Error(`${program} is not installed.`)
  }
  const start = (name: string, env: Record<string, string>, ...command: string[]): BoxProcess => {
    const [program, ...words] = [...namespaces.in(name), ...command]
    return startProcess(env, words, directory, program)
  }
  const processes = Object.entries(etcdServers).map(([name, address]) => {
    const own = blocks.etcd.replaceAll('10.0.0.21:23', `${address}:23`).replace('ETCD_NAME=db1', `ETCD_NAME=${name}`)
    // the list of all has the address of each
    const settings = own.replace(`db1=http://${address}:2380`, 'db1=http://10.0.0.21:2380').trim().split('\n')
    const env = Object.fromEntries(settings.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]))
    return start(name, { ...env, ETCD_DATA_DIR: join(directory, `etcd-${name}`), ETCD_LOG_LEVEL: 'error' }, 'etcd')
  })
  const example = readFileSync(`${root}config/patroni.yml.example`, 'utf8')
  const [uid, gid] = (await succeed('stat', ['-c', '%u %g', '/var/lib/postgresql'])).toString().split(' ').map(Number)
  const directoryOf = (name: string): string => join(directory, name)
  for (const [name, address] of Object.entries(servers)) {
    const own = directoryOf(name)
    mkdirSync(own)
    chownSync(own, uid!, gid!)
    await succeed('sh', ['-ec', blocks.certificate.replaceAll('/etc/patroni', own)])
    const config = example
      .replace('name: db1', `name: ${name}`)
      .replaceAll(/10\.0\.0\.21:(8008|5432)/g, `${address}:$1`)
      .replaceAll(/\/var\/lib\/postgresql\/15|\/var\/lib\/postgresql|\/var\/run\/postgresql|\/etc\/patroni/g, own)
    const file = join(own, 'config.yml')
    writeFileSync(file, config)
    chownSync(file, uid!, gid!)
    chmodSync(file, 0o400)
    processes.push(start(name, {}, ...asPostgres(own), 'patroni', file))
  }
  const ask = async (server: Server, statement: string): Promise<string> => {
    const target = `host=${servers[server]} user=postgres dbname=postgres sslmode=require connect_timeout=2`
    const [program, ...words] = [...namespaces.in('proxy'), 'psql', '--tuples-only', '--no-align', '--command', statement, target]
    return (await run(program, words, { env: { PGPASSWORD: password } })).output.toString().trim()
  }
  const cluster: Cluster = {
    processes,
    async primary() {
      const found: Server[] = []
      for (const server of ['db1', 'db2'] as const)
        if ((await ask(server, 'SELECT pg_is_in_recovery()')) === 'f') found.push(server)
      return found.length === 1 ? found[0] : undefined
    },
    async isSynchronous() {
      const primary = await cluster.primary()
      if (!primary) return false
      const names = await ask(primary, "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'")
      return names === '1'
    },
    async switchover() {
      const [program, ...words] = [...namespaces.in('proxy'), 'patronictl', '-c', join(directoryOf('db1'), 'config.yml')]
      await succeed(program, [...words, 'switchover', '--force'], { env: { HOME: directory } })
    },
    async onPrimary(script) {
      const primary = await cluster.primary()
      if (!primary) throw new Error('There is no primary.')
      const own = directoryOf(primary)
      const text = script.replaceAll('/var/run/postgresql', own)
      const [program, ...words] = [...namespaces.in(primary), ...asPostgres(own), 'sh', '-ec', text]
      await succeed(program, words)
    },
  }
  const until = Date.now() + 120_000
  while (!(await cluster.isSynchronous())) {
    if (Date.now() > until) {
      const said = processes.map((one) => (one.errors() + one.output()).slice(-1500)).join('\n--\n')
      throw new Error(`The cluster has no synchronous standby after two minutes:\n${said}`)
    }
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
  return cluster
}
