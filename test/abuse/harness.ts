import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, test } from 'vitest'
import type { Scope } from '../../src/core/scopes.ts'
import { deliver, message } from '../support/appliance.ts'
import { DnsStub } from '../support/dns-stub.ts'
import { freePort } from '../support/free-port.ts'
import { operator } from '../support/operator.ts'
import { type BoxProcess, startProcess } from '../support/process.ts'
import { Attacker } from './attacker.ts'
import type { Honest, Seen } from './honest-caller.ts'

/**
 * Attacks on a box that runs as a user starts it, beside somebody who uses it honestly (`honest-caller.ts`): calls `/healthz`, lists and
 * searches e-mail, opens connections of HTTPS, and sends small and large mail by SMTP, with STARTTLS and without. The attacker has an account of their own and the least rights that the attack needs. During and
 * after each attack
 *
 * - the honest caller's calls are all answered 200, and the 99th percentile of how long the box holds one is below `longest`;
 * - the box and what it started hold less than `mostMemory`;
 * - honest mail is accepted, if need be at a second try, and all that was accepted is in the list;
 * - the attacker heard nothing but what the row says, and something;
 * - the box is alive.
 *
 * A bound on time in a test is only sound if nothing but the box can break it. So an answer counts for as long as the *box* held it: the
 * time on the wall, less what the box's main thread and the caller's were ready to run and waited for a processor that other programs
 * had. The kernel counts that for each thread (`/proc/PID/schedstat`). It is never less than what the main thread itself ran meanwhile, so
 * work done there at a caller's wish always counts. On a machine with ten programs to a processor the wall says a second where this says
 * thirty milliseconds; where the main thread stands still over its own work both say the same.
 *
 * A new attack is a row of a table in one of the test files beside this one. With ABUSE_FIGURES=<file> each attack adds its figures to
 * that file, a line of JSON each.
 */
export interface Attack {
  name: string
  /** What the attacker's key may do; it is bound to the attacker's identity. None: a stranger. */
  scopes: Scope[]
  /** The key is for the attacker's whole account. */
  wholeAccount?: true
  /** What must be there before, and is not measured. */
  prepare?: (attacker: Attacker) => Promise<void>
  /** Attacks until `attacker.signal` says that it is enough. */
  run: (attacker: Attacker) => Promise<unknown>
  /** Milliseconds. */
  lasts?: number
  /** All that the attacker may hear: a status with the code of the refusal, an SMTP reply's code, `closed`. */
  answers: readonly string[]
}

/** Milliseconds. */
const longest = 500

/** What is answered by the main thread alone; a search has a thread of its own, which the machine may keep waiting. */
const bounded = ['/healthz', '/v1/identities/:id/emails']

/** Mebibytes. An idle box with its workers holds about 300. */
const maxMemory = 600

/** How long an attack may need to end once it is told to, in milliseconds. */
const timeout = 45_000

const root = fileURLToPath(new URL('../..', import.meta.url))
const bootstrapKey = 'abuse-key-with-every-scope-1234567890'

/** Tests each of these attacks; all of a file are on one box, and a box that a row has harmed is replaced. */
export function underAttack(attacks: readonly Attack[], env: Record<string, string> = {}): void {
  let scene: Scene | undefined
  afterAll(() => scene?.close())
  test.for(attacks.map((attack) => [attack.name, attack] as const))(
    '%s: others are served, and nothing is lost',
    { timeout: 180_000 },
    async ([, attack]) => {
      scene ??= await Scene.open(env)
      const harm = await scene.endure(attack)
      if (harm.length > 0) {
        await scene.close()
        scene = undefined
      }
      expect(harm).toEqual([])
    },
  )
}

type Any = ReturnType<typeof JSON.parse>

class Scene {
  readonly #box: BoxProcess
  readonly #caller: ChildProcess
  readonly #home: string
  readonly #dns: DnsStub
  readonly #honest: Honest
  readonly #attackers: string
  #alive = true

  private constructor(parts: {
    box: BoxProcess
    caller: ChildProcess
    home: string
    dns: DnsStub
    honest: Honest
    attackers: string
  }) {
    this.#box = parts.box
    this.#caller = parts.caller
    this.#home = parts.home
    this.#dns = parts.dns
    this.#honest = parts.honest
    this.#attackers = parts.attackers
    void this.#box.ended.then(() => (this.#alive = false))
  }

  static async open(env: Record<string, string>): Promise<Scene> {
    const home = mkdtempSync(join(tmpdir(), 'pillarbox-abuse-'))
    const dns = await DnsStub.start()
    const [http, tls] = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`]
    const settings = {
      PILLARBOX_DATA_DIR: join(home, 'data'),
      // the origin that sign-ins must name: by itself it would be that of HTTPS
      PILLARBOX_PUBLIC_URL: `http://${http}`,
      PILLARBOX_HTTP__LISTEN: http,
      PILLARBOX_HTTP__TLS__LISTEN: tls,
      PILLARBOX_SMTP__LISTEN: '127.0.0.1:0',
      PILLARBOX_DNS__SERVERS: dns.servers.join(','),
      PILLARBOX_BOOTSTRAP_KEY: bootstrapKey,
      ...env,
    }
    const start = (): BoxProcess => startProcess(settings, ['serve'], home, join(root, 'bin/pillarbox'))
    const young = start()
    const { smtp: first } = await young.said('started')
    const inPerson = operator(join(home, 'data', 'control.sock'))
    const identity = await inPerson('POST', '/v1/identities', { name: 'Honest' })
    const { id: attackers } = await inPerson('POST', '/v1/accounts', {
      name: 'Mallory',
      email: 'mallory@attacker.test',
      password: 'a password that nobody guesses',
    })
    for (let number = 0; number < 4; number += 1) {
      const fields = { 'Message-ID': `<${number}@sender.test>`, 'In-Reply-To': `<${number - 1}@sender.test>` }
      await deliver(first[0], { to: identity.email, raw: message(fields, 'Hello\n') })
    }
    // most boxes are stopped once while they hold little, and not again for long
    await young.end('SIGTERM')
    const box = start()
    const { smtp } = await box.said('started')
    const caller = fork(join(import.meta.dirname, 'honest-caller.ts'), { stdio: 'inherit' })
    const honest = {
      pid: box.child.pid!,
      url: `http://${http}`,
      tls: `https://${tls}`,
      key: bootstrapKey,
      smtp: smtp[0],
      identity,
    }
    const scene = new Scene({ box, caller, home, dns, honest, attackers })
    // workers are started by the first message; that is not what is measured
    await scene.#watched('first', async () => sleep(1000))
    return scene
  }

  async close(): Promise<void> {
    this.#caller.kill('SIGKILL')
    this.#box.child.kill('SIGKILL')
    await this.#box.ended
    await this.#dns.close()
    rmSync(this.#home, { recursive: true, force: true })
  }

  /** What an attack did that it should not have: one sentence for each harm. */
  async endure(attack: Attack): Promise<string[]> {
    const enough = new AbortController()
    const attacker = new Attacker(await this.#target(attack), enough.signal)
    const harm: string[] = []
    await attack.prepare?.(attacker)
    attacker.answers.clear()
    const seen = await this.#watched(attack.name, async () => {
      const timer = setTimeout(() => enough.abort(), attack.lasts ?? 1000)
      const done = attack.run(attacker).then(() => true)
      const inTime = await Promise.race([done, sleep(timeout, false, { ref: false })])
      clearTimeout(timer)
      enough.abort()
      if (!inTime) harm.push(`the attack did not end within ${timeout} ms`)
      attacker.end()
    })
    const answers = Object.fromEntries(attacker.answers)
    if (seen) {
      harm.push(...seen.refused)
      for (const [call, { held, wall }] of Object.entries(seen.calls)) {
        if (bounded.includes(call) && held >= longest) harm.push(`the p99 of ${call} was ${held} ms (${wall} ms on the wall)`)
      }
      const memory = Math.round(seen.memory / 1024 / 1024)
      if (memory >= maxMemory) harm.push(`the box held ${memory} MiB`)
      if (seen.accepted.length === 0) harm.push('no honest mail was accepted')
      if (this.#alive) harm.push(...(await this.#lost(seen.accepted)))
    }
    if (!this.#alive) harm.push(`the box has ended: ${this.#box.errors().slice(-2000)}`)
    const unexpected = Object.keys(answers).filter((answer) => !attack.answers.includes(answer))
    if (unexpected.length > 0) harm.push(`the attacker heard ${JSON.stringify(answers)}`)
    if (attacker.answers.size === 0) harm.push('the attacker heard nothing')
    const figures = process.env['ABUSE_FIGURES']
    if (figures !== undefined) {
      const memory = seen && Math.round(seen.memory / 1024 / 1024)
      const line = { attack: attack.name, answers, calls: seen?.calls, mail: seen?.accepted.length, memory, harm }
      appendFileSync(figures, `${JSON.stringify(line)}\n`)
    }
    return harm
  }

  /** What the honest caller sees while something is done; undefined when the box ended over it. */
  async #watched(name: string, work: () => Promise<unknown>): Promise<Seen | undefined> {
    this.#caller.send({ begin: this.#honest, name })
    await work()
    // what an attack leaves to be done is its doing as well
    await sleep(250)
    if (!this.#alive) return undefined
    const seen = once(this.#caller, 'message') as Promise<[Seen]>
    this.#caller.send('end')
    const answer = await Promise.race([
      seen,
      once(this.#caller, 'exit').then(() => undefined),
      this.#box.ended.then(() => undefined),
    ])
    return answer?.[0]
  }

  async #target({ scopes, wholeAccount }: Attack) {
    const theirs = operator(join(this.#home, 'data', 'control.sock'), this.#attackers)
    const identity = await theirs('POST', '/v1/identities', {})
    const bound = wholeAccount ? {} : { identity_id: identity.id }
    const key = scopes.length === 0 ? '' : (await theirs('POST', '/v1/api-keys', { scopes, ...bound })).key
    const inPerson = (method: string, path: string, body?: unknown, account?: string): Promise<Any> =>
      operator(join(this.#home, 'data', 'control.sock'), account)(method, path, body)
    const box = { directory: join(this.#home, 'data'), dns: this.#dns, operator: inPerson }
    return { url: this.#honest.url, tls: this.#honest.tls, smtp: this.#honest.smtp, key, identity, box }
  }

  /** The accepted messages that no list shows. */
  async #lost(subjects: readonly string[]): Promise<string[]> {
    const missing = new Set(subjects)
    const inPerson = operator(join(this.#home, 'data', 'control.sock'))
    let cursor: string | null = ''
    while (missing.size > 0 && cursor !== null) {
      const page = cursor === '' ? '' : `&cursor=${cursor}`
      const list = await inPerson('GET', `/v1/identities/${this.#honest.identity.id}/emails?limit=100${page}`)
      for (const { subject } of list.data) missing.delete(subject)
      cursor = list.next_cursor
    }
    return [...missing].map((subject) => `${JSON.stringify(subject)} was accepted and is not in the list`)
  }
}
