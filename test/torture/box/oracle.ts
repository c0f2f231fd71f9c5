import { createHmac } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { isOver, type Load, type Write } from './load.ts'
import { atOnce } from './at-once.ts'
import type { Peers } from './peers.ts'
import { codeAt } from './code.ts'
import { type Answered, type Furnished, lastLines, type RunningBox, type World } from './world.ts'

/** What a box is compared with. */
interface Expectation {
  world: {
    furnished: Furnished
    peers: Pick<Peers, 'hooks' | 'arrivals' | 'copies' | 'heard'> & Partial<Pick<Peers, 'twilio'>>
  }
  load: Load
  /** Only what was acknowledged up to this mark must be there. */
  until?: number
  /** How often the box was started after it had begun to send: a message may arrive as often, and never with other bytes. */
  starts: number
}

/** Calls of the oracle that are open at once. */
const clients = 8

const unfinished = new Set(['held', 'scheduled', 'queued', 'sending', 'deferred'])

/** Compares a running box with all that it had acknowledged; answers a sentence for each promise that is broken. */
export async function faultsOf(box: RunningBox, expectation: Expectation): Promise<string[]> {
  const oracle = new Oracle(box, expectation)
  await oracle.run()
  return oracle.faults
}

class Oracle {
  readonly faults: string[] = []
  readonly #box: RunningBox
  readonly #expected: Expectation
  readonly #until: number
  /** E-mails that are marked as copies of earlier ones. */
  readonly #copies = new Set<string>()

  constructor(box: RunningBox, expected: Expectation) {
    this.#box = box
    this.#expected = expected
    this.#until = expected.until ?? Infinity
  }

  async run(): Promise<void> {
    await this.#sends()
    const received = await this.#mails()
    const identities = await this.#identities()
    await this.#passwords()
    await this.#reveals()
    await this.#metadata()
    await this.#events([...received, ...identities])
    if (this.#expected.world.furnished.phone === undefined) return
    await this.#texts()
    await this.#cards()
    await this.#keys()
    await this.#webhook()
  }

  /** What was handed to the provider is never handed to it again, and what it has is not said to be unsent. */
  async #texts(): Promise<void> {
    const { furnished, peers } = this.#expected.world
    const path = `/v1/identities/${furnished.inbox.id}/sms`
    let sent = await this.#box.list(`${path}?direction=outbound`)
    for (const end = Date.now() + 60_000; sent.some(({ status }) => status === 'queued') && Date.now() < end;) {
      await sleep(100)
      sent = await this.#box.list(`${path}?direction=outbound`)
    }
    const byName = Map.groupBy(sent, ({ body }) => String(body))
    const handed = Map.groupBy(peers.twilio!.messages, ({ Body }) => Body)
    for (const write of this.#writes('text')) {
      const found = byName.get(write.name) ?? []
      this.#count(write, found.length)
      const copies = handed.get(write.name)?.length ?? 0
      if (copies > 1) this.faults.push(`${write.name} was handed to the provider ${copies} times`)
      if (found.length === 0 && copies > 0) this.faults.push(`${write.name} was handed to the provider and is not stored`)
      const status = found[0]?.['status']
      const right = status === undefined || (status === 'sent' && copies === 1) || (status === 'unknown' && copies < 2)
      if (!right) this.faults.push(`${write.name} is ${status}, and was handed to the provider ${copies} times`)
    }
    const received = Map.groupBy(await this.#box.list(`${path}?direction=inbound`), ({ body }) => String(body))
    for (const write of this.#writes('texted')) this.#count(write, received.get(write.name)?.length ?? 0)
  }

  async #cards(): Promise<void> {
    const path = `/v1/identities/${this.#expected.world.furnished.inbox.id}/cards`
    const byName = Map.groupBy(await this.#box.list(path), ({ label }) => String(label))
    const cancelled = new Map(this.#writes('cancel-card').map((write) => [write.content, write]))
    const reveals: (() => Promise<void>)[] = []
    for (const write of this.#writes('card')) {
      const found = byName.get(write.name) ?? []
      this.#count(write, found.length)
      const end = cancelled.get(write.name)
      for (const { id, status } of found) {
        if (end !== undefined && this.#isKept(end) && status !== 'cancelled')
          this.faults.push(`${write.name} was cancelled and is ${status}`)
        if (end === undefined && status !== 'active') this.faults.push(`${write.name} is ${status}`)
        if (end === undefined) reveals.push(() => this.#card(write, `/v1/cards/${id}/reveal`))
      }
    }
    await atOnce(clients, reveals)
  }

  async #card(write: Write, path: string): Promise<void> {
    const answer = await this.#box.ask('POST', path, { amount_cents: 1, purpose: 'the oracle' })
    if (!JSON.stringify(answer?.body).includes(JSON.stringify(write.content)))
      this.faults.push(`${write.name} is revealed as ${answer?.status} ${JSON.stringify(answer?.body)}`)
  }

  async #keys(): Promise<void> {
    const byName = Map.groupBy(await this.#box.list('/v1/api-keys'), ({ label }) => String(label))
    const rotations = new Map(this.#writes('rotate-key').map((write) => [write.content, write]))
    const tries: (() => Promise<void>)[] = []
    for (const write of this.#writes('key')) {
      this.#count(write, byName.get(write.name)?.length ?? 0)
      const rotation = rotations.get(write.name)
      if (write.secret === undefined || (rotation !== undefined && rotation.secret === undefined)) continue
      const expected: [string, number][] =
        rotation === undefined
          ? [[write.secret, 200]]
          : [
              [write.secret, 401],
              [rotation.secret!, 200],
            ]
      for (const [secret, status] of expected)
        tries.push(async () => {
          const answer = await this.#box.ask('GET', '/v1/identities?limit=1', undefined, undefined, secret)
          if (answer?.status !== status)
            this.faults.push(
              `${write.name}${rotation === undefined ? '' : ' was rotated, and'} gives ${answer?.status}, not ${status}`,
            )
        })
    }
    await atOnce(clients, tries)
  }

  /** What is told by now is signed with the secret that was acknowledged last. */
  async #webhook(): Promise<void> {
    const last = this.#writes('rotate-webhook').at(-1)
    if (last === undefined || !this.#isKept(last)) return
    const { hooks } = this.#expected.world.peers
    const { id } = await this.#box.get('POST', '/v1/identities', { name: 'Signed' })
    for (const end = Date.now() + 60_000; Date.now() < end; await sleep(50)) {
      const told = hooks.received.find(({ body }) => body.data['id'] === id)
      if (told === undefined) continue
      const mac = createHmac('sha256', last.content).update(told.raw).digest('hex')
      if (told.headers['x-service-signature'] !== mac) this.faults.push(`${last.name} was acknowledged, and another secret signs`)
      return
    }
    this.faults.push('no webhook was told of the identity of the oracle')
  }

  #writes(kind: Write['kind']): Write[] {
    return this.#expected.load.writes.filter((write) => write.kind === kind)
  }

  #isKept({ acknowledged }: Write): boolean {
    return acknowledged !== undefined && acknowledged.mark <= this.#until
  }

  /** Each that was acknowledged is there once, each other at most once. */
  #count(write: Write, found: number): void {
    const kept = this.#isKept(write)
    if (kept && found === 0) this.faults.push(`${write.name} was acknowledged and is lost`)
    if (found > 1) this.faults.push(`${write.name} is there ${found} times`)
  }

  async #mails(): Promise<string[]> {
    const { inbox } = this.#expected.world.furnished
    const emails = await this.#box.list(`/v1/identities/${inbox.id}/emails?duplicates=true`)
    const listed = new Set((await this.#box.list(`/v1/identities/${inbox.id}/emails`)).map(({ id }) => id as string))
    const byName = Map.groupBy(emails, ({ subject }) => String(subject))
    const deletions = new Map(this.#writes('delete-mail').map((write) => [write.content, write]))
    const raws: (() => Promise<void>)[] = []
    const ids: string[] = []
    for (const write of this.#writes('mail')) {
      const found = byName.get(write.name) ?? []
      const shown = found.filter(({ id }) => listed.has(String(id)))
      const deletion = deletions.get(write.name)
      if (deletion === undefined) this.#count(write, shown.length)
      else if (this.#isKept(deletion) && shown.length > 0) this.faults.push(`${write.name} was deleted and is there`)
      if (found.length > write.asked)
        this.faults.push(`${write.name} was sent ${write.asked} times and is there ${found.length} times`)
      for (const { id } of found) {
        raws.push(async () => {
          const raw = await this.#box.text(`/v1/identities/${inbox.id}/emails/${id}/raw`)
          if (!raw.endsWith(Buffer.from(write.content).toString('latin1')))
            this.faults.push(`${write.name} is kept with other bytes`)
        })
      }
      // a copy that is marked as one is no event
      if (this.#isKept(write)) ids.push(...shown.map(({ id }) => String(id)))
      for (const { id } of found.filter((one) => !shown.includes(one))) this.#copies.add(String(id))
    }
    await atOnce(clients, raws)
    return ids
  }

  async #identities(): Promise<string[]> {
    const byName = Map.groupBy(await this.#box.list('/v1/identities'), ({ name }) => String(name))
    const ids: string[] = []
    for (const write of this.#writes('identity')) {
      const found = byName.get(write.name) ?? []
      this.#count(write, found.length)
      if (!this.#isKept(write)) continue
      if (found.some(({ id }) => id !== write.acknowledged!.id)) this.faults.push(`${write.name} has another id`)
      ids.push(write.acknowledged!.id)
    }
    return ids
  }

  async #sends(): Promise<void> {
    const { world, starts } = this.#expected
    const path = `/v1/identities/${world.furnished.writer.id}/emails?direction=outbound`
    let emails = await this.#box.list(path)
    for (const end = Date.now() + 60_000; emails.some(({ status }) => unfinished.has(String(status))) && Date.now() < end;) {
      await sleep(100)
      await this.#retryCrashed()
      emails = await this.#box.list(path)
    }
    const byName = Map.groupBy(emails, ({ subject }) => String(subject))
    const copies = world.peers.copies()
    for (const write of this.#writes('send')) {
      const found = byName.get(write.name) ?? []
      this.#count(write, found.length)
      for (const email of found) await this.#send(write, email, copies.get(String(email['message_id'])) ?? [], starts)
    }
    // what has left was stored before
    const known = new Set(emails.map(({ message_id }) => String(message_id)))
    for (const [id, mark] of world.peers.arrivals)
      if (mark <= this.#until && !known.has(id)) this.faults.push(`${id} was sent and is not stored`)
  }

  /** A message that was under way at three crashes in a row waits before it is sent alone; the operator's retry ends the wait. */
  async #retryCrashed(): Promise<void> {
    for (const { id, last_answer } of await this.#box.list('/v1/queue?kind=email'))
      if (String(last_answer).includes('the box crashed repeatedly')) await this.#box.ask('POST', `/v1/queue/${id}/retry`)
  }

  async #send(write: Write, { id, status, message_id }: Answered, copies: string[], starts: number): Promise<void> {
    if (status !== 'delivered') {
      const { writer } = this.#expected.world.furnished
      const { deliveries } = await this.#box.get('GET', `/v1/identities/${writer.id}/emails/${id}`)
      this.faults.push(`${write.name} is ${status}: ${JSON.stringify(deliveries)}`)
    }
    if (copies.length === 0) this.faults.push(`${write.name} is ${status} and never arrived`)
    if (copies.length > starts) this.faults.push(`${write.name} arrived ${copies.length} times with ${starts} starts of the box`)
    if (new Set(copies).size > 1) this.faults.push(`${message_id} arrived with different bytes`)
  }

  async #passwords(): Promise<void> {
    const path = `/v1/identities/${this.#expected.world.furnished.inbox.id}/totp`
    const byName = Map.groupBy(await this.#box.list(path), ({ service_name }) => String(service_name))
    const deletions = this.#writes('delete')
    const codes: (() => Promise<void>)[] = []
    for (const write of this.#writes('totp')) {
      const found = byName.get(write.name) ?? []
      const deletion = deletions.find(({ content }) => content === write.name)
      if (deletion === undefined) this.#count(write, found.length)
      else if (this.#isKept(deletion) && found.length > 0) this.faults.push(`${write.name} was deleted and is there`)
      for (const { id } of found) codes.push(() => this.#code(write, `${path}/${id}/code`))
    }
    await atOnce(clients, codes)
  }

  async #code(write: Write, path: string): Promise<void> {
    const answer = await this.#box.ask('GET', path)
    const now = Math.floor(Date.now() / 1000)
    const right = [-30, 0, 30].map((shift) => codeAt(write.content, now + shift))
    if (answer?.status !== 200 || !right.includes(String(answer.body['code'])))
      this.faults.push(`${write.name} gives ${answer?.status} ${JSON.stringify(answer?.body)}`)
  }

  async #reveals(): Promise<void> {
    const { card } = this.#expected.world.furnished
    const rows = await this.#box.list(`/v1/cards/${card.id}/transactions`)
    const charged = rows.filter(({ type, allowed, reason }) => type === 'reveal' && allowed === true && reason === null)
    const byPurpose = Map.groupBy(charged, ({ purpose }) => String(purpose))
    for (const write of this.#writes('reveal')) {
      const found = byPurpose.get(write.name) ?? []
      this.#count(write, found.length)
      if (found.some(({ amount_cents }) => String(amount_cents) !== write.content))
        this.faults.push(`${write.name} has another amount`)
    }
    const sum = charged.reduce((total, { amount_cents }) => total + Number(amount_cents), 0)
    const { spent_cents } = await this.#box.get('GET', `/v1/cards/${card.id}/limits`)
    if (spent_cents !== sum) this.faults.push(`${spent_cents} cents are spent, and ${sum} are in the ledger`)
  }

  async #metadata(): Promise<void> {
    const { metadata } = await this.#box.get('GET', `/v1/identities/${this.#expected.world.furnished.inbox.id}`)
    for (const write of this.#writes('metadata')) this.#count(write, Number(Object.hasOwn(metadata as object, write.name)))
  }

  /** The endpoint hears of each of these objects, and of each event always the same. */
  async #events(ids: string[]): Promise<void> {
    const { peers } = this.#expected.world
    const missing = (): string[] => {
      const told = new Set(peers.hooks.received.map(({ body }) => body.data['id']))
      return ids.filter((id) => !told.has(id))
    }
    for (const end = Date.now() + 60_000; missing().length > 0 && Date.now() < end;) await sleep(100)
    for (const id of missing()) this.faults.push(`no webhook was told of ${id}`)
    for (const { body } of peers.hooks.received)
      if (this.#copies.has(String(body.data['id']))) this.faults.push(`a webhook was told of the copy ${String(body.data['id'])}`)
    for (const [id, told] of peers.heard()) {
      if (new Set(told.map(({ raw }) => raw)).size > 1) this.faults.push(`event ${id} was told with different contents`)
      if (told.length > this.#expected.starts)
        this.faults.push(`event ${id} was told ${told.length} times with ${this.#expected.starts} starts`)
    }
  }
}

/** Writes that are neither answered nor said to be interrupted, though they were repeated under their keys. */
export function faultsOfKeys(load: Load): string[] {
  return load.writes
    .filter((write) => write.call !== undefined && !isOver(write))
    .map(({ name }) => `${name} was repeated, and is neither answered nor interrupted`)
}

/** The files of a data directory whose box was stopped. */
const lasting = new Set(['lock', 'lock.pid', 'pillarbox.db', 'state.json', 'state.json.previous', 'tls'])

/** What is wrong with the files of a box that was stopped, and with its backups: one sentence each. */
export async function faultsOnDisk(world: World, home: string, until?: { mark: number }): Promise<string[]> {
  const faults = readdirSync(join(home, 'data'))
    .filter((name) => !lasting.has(name))
    .map((name) => `data/${name} is left`)
  const database = new DatabaseSync(join(home, 'data', 'pillarbox.db'), { readOnly: true })
  try {
    const [whole] = database.prepare('PRAGMA integrity_check').all()
    if (whole?.['integrity_check'] !== 'ok') faults.push(`integrity_check: ${String(whole?.['integrity_check'])}`)
    const orphans = database.prepare('PRAGMA foreign_key_check').all()
    if (orphans.length > 0) faults.push(`foreign_key_check: ${JSON.stringify(orphans[0])}`)
    const stored = new Set(
      database
        .prepare('SELECT id FROM events')
        .all()
        .map(({ id }) => String(id)),
    )
    for (const [id, mark] of world.peers.events)
      if (mark <= (until?.mark ?? Infinity) && !stored.has(id)) faults.push(`event ${id} was told and is not stored`)
  } finally {
    database.close()
  }
  faults.push(...(await faultsOfShelf(world, home)))
  return faults
}

/** What is wrong with the newest backup that a box made itself, under the master key that it has. */
export async function faultsOfShelf(world: World, home: string): Promise<string[]> {
  const shelf = join(home, 'backups')
  const names = existsSync(shelf) ? readdirSync(shelf) : []
  const newest = names.findLast((one) => one.endsWith('.tar'))
  return newest === undefined ? [] : faultsOfBackup(world, home, join(shelf, newest))
}

/** Waits until nothing is left of backups that were interrupted: the process that writes one ends with its box. */
export async function faultsOfDrafts(home: string): Promise<string[]> {
  const drafts = (): string[] => readdirSync(join(home, 'backups')).filter((name) => !name.endsWith('.tar'))
  for (const end = Date.now() + 10_000; drafts().length > 0 && Date.now() < end;) await sleep(50)
  return drafts().map((name) => `backups/${name} is left`)
}

/** Backs a box up, whatever its state, and verifies the backup message by message. */
export async function faultsInBackup(world: World, home: string): Promise<string[]> {
  const file = join(home, 'last.tar')
  const made = world.command(home, ['backup', file])
  if ((await made.ended) !== 0) return [`pillarbox backup: ${lastLines(made)}`]
  return faultsOfBackup(world, home, file)
}

async function faultsOfBackup(world: World, home: string, file: string): Promise<string[]> {
  const verified = world.command(home, ['verify', file, '--master-key', join(home, 'data-keys', 'master.key')])
  return (await verified.ended) === 0 ? [] : [`pillarbox verify ${file}: ${lastLines(verified)}`]
}
