import { cpSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../../support/free-port.ts'
import { startPostgres, type PostgresServer } from '../../support/postgres-server.ts'
import { type BoxProcess, startProcess, testBox } from '../../support/process.ts'
import type { Random } from '../../support/random.ts'
import { type CuttingProxy, cuttingProxy } from '../../store/postgres/cutting-proxy.ts'
import { apiKey, type Furnished, furnish, lastLines, RunningBox, started } from '../box/world.ts'
import { type Balancer, type Ports, startBalancer } from './balancer.ts'
import { Destinations } from './destinations.ts'

/** Boxes of a site. */
const boxCount = 2

/** One of the boxes, and its way to the database. */
export interface Member {
  number: number
  ports: Ports
  home: string
  database: CuttingProxy
  running: RunningBox | undefined
}

export interface SiteOptions {
  directory: string
  program: string
  balancer: string
  random: Random
}

/** Two boxes on one database, HAProxy in front of them, and what they talk to. */
export class Site {
  readonly destinations: Destinations
  readonly members: readonly Member[]
  /** The boxes as their callers see them. */
  front!: RunningBox
  furnished!: Furnished
  database: PostgresServer
  readonly #program: string
  #balancer: Balancer | undefined
  readonly #processes = new Set<BoxProcess>()
  readonly #kill = (): void => {
    for (const { child } of this.#processes) child.kill('SIGKILL')
  }

  private constructor(destinations: Destinations, members: readonly Member[], database: PostgresServer, program: string) {
    this.destinations = destinations
    this.members = members
    this.database = database
    this.#program = program
    process.once('exit', this.#kill)
  }

  static async open({ directory, program, balancer, random }: SiteOptions): Promise<Site> {
    // a commit that does not wait is written when the server next does so
    const database = await startPostgres({ max_connections: '200', wal_keep_size: '64MB', wal_writer_delay: '2s' })
    const destinations = await Destinations.open(boxCount, random)
    const members: Member[] = []
    for (let number = 0; number < boxCount; number++) {
      const home = join(directory, `box${number}`)
      mkdirSync(join(home, 'backups'), { recursive: true })
      const ports = { http: await freePort(), smtp: await freePort() }
      members.push({ number, home, ports, database: await cuttingProxy(database.port), running: undefined })
    }
    const site = new Site(destinations, members, database, program)
    try {
      await database.run('postgres', "CREATE DATABASE site ENCODING 'UTF8' LOCALE 'C' TEMPLATE template0")
      site.#balancer = await startBalancer(
        balancer,
        directory,
        members.map(({ ports }) => ports),
      )
      const first = await site.start(members[0]!)
      site.furnished = await furnish(first, destinations)
      for (const { home } of members.slice(1)) cpSync(join(members[0]!.home, 'keys'), join(home, 'keys'), { recursive: true })
      await Promise.all(members.slice(1).map((member) => site.start(member)))
      const { http, smtp } = site.#balancer
      const smtpOfAll = { host: '127.0.0.1', port: smtp }
      // each call goes to another box
      site.front = new RunningBox(first.process, `http://127.0.0.1:${http}`, smtpOfAll, { Connection: 'close' })
      await site.inFront()
      return site
    } catch (error) {
      await site.close()
      throw error
    }
  }

  /** Starts a box, which may be one that was killed. */
  async start(member: Member): Promise<RunningBox> {
    const { home, ports, database, number } = member
    const { dns, sinks } = this.destinations
    const settings = {
      ...testBox,
      PILLARBOX_HTTP__LISTEN: `127.0.0.1:${ports.http}`,
      PILLARBOX_SMTP__LISTEN: `127.0.0.1:${ports.smtp}`,
      PILLARBOX_DATA_DIR: join(home, 'data'),
      PILLARBOX_KEYS_DIR: join(home, 'keys'),
      PILLARBOX_BACKUP__DIRECTORY: join(home, 'backups'),
      PILLARBOX_DATABASE__URL: `postgres://postgres@127.0.0.1:${database.port}/site`,
      PILLARBOX_DATABASE__SEVERAL: 'true',
      PILLARBOX_BOOTSTRAP_KEY: apiKey,
      PILLARBOX_DNS__SERVERS: dns.servers.join(','),
      PILLARBOX_OUTBOUND__PORT: String(sinks[number]!.port),
      PILLARBOX_OUTBOUND__RATE_PER_IDENTITY: '100000',
      PILLARBOX_OUTBOUND__ALLOW_NETWORKS: '127.0.0.0/8',
      PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8',
      PILLARBOX_HTTP__PUBLIC_RATE_LIMIT: '0',
      PILLARBOX_SMTP__MAX_CONNECTIONS_PER_ADDRESS: '200',
    }
    const process = startProcess(settings, ['serve'], home, join(this.#program, 'bin', 'pillarbox'))
    this.#processes.add(process)
    void process.ended.then(() => this.#processes.delete(process))
    return (member.running = await started(process))
  }

  /** Resolves when callers reach boxes. Throws an Error after a minute. */
  async inFront(): Promise<void> {
    for (const end = Date.now() + 60_000; Date.now() < end; await sleep(50)) {
      const answer = await this.front.ask('GET', '/v1/identities?limit=1')
      if (answer?.status === 200) return
    }
    throw new Error('The boxes do not answer.')
  }

  /** Kills the primary, and lets boxes reach the standby in its place, which is promoted after a while. */
  async failOver(standby: PostgresServer, which: 'first' | 'all', detection: number): Promise<void> {
    const former = this.database
    await former.kill(which)
    await sleep(detection)
    await standby.promote()
    for (const { database } of this.members) database.turnTo(standby.port)
    this.database = standby
    await former.close()
  }

  /** Ends the boxes as an operator does; answers what is wrong with how they ended. */
  async stop(): Promise<string[]> {
    const faults: string[] = []
    for (const { running, number } of this.members) {
      if (running === undefined) continue
      const status = await running.process.end('SIGTERM')
      if (status !== 0) faults.push(`box ${number} ended with ${status}: ${lastLines(running.process)}`)
    }
    return faults
  }

  async close(): Promise<void> {
    this.#kill()
    process.off('exit', this.#kill)
    await Promise.all([...this.#processes].map(({ ended }) => ended))
    await Promise.all([
      this.#balancer?.close(),
      this.destinations.close(),
      ...this.members.map(({ database }) => database.close()),
    ])
    await this.database.close()
  }
}
