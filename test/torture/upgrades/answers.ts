import type { Answered, RunningBox } from '../box/world.ts'
import { kept } from '../../ops/backup/read-back.ts'

/** What a box answers, by path: a list as its items, a text as it is. */
export class Answers extends Map<string, unknown> {
  /** Calls that were not answered with 200, without ids, and with their status. */
  readonly refused = new Set<string>()

  refuse(path: string, status: number | undefined): void {
    const call = path
      .replace(/\?.*/, '')
      .replaceAll(/\/[a-z]+_[0-9A-Za-z]{10,}/g, '/:id')
      .replaceAll(/\/\d+(?=\/|$)/g, '/:n')
    this.refused.add(`${call} (${status ?? 'no answer'})`)
  }
}

type Item = Answered

/** Asks for all that the account of the key has, as far as the box knows the calls: every list to its end and each of its items. */
export async function readAnswers(box: RunningBox): Promise<Answers> {
  const reader = new Reader(box)
  await reader.read()
  return reader.answers
}

class Reader {
  readonly answers = new Answers()
  readonly #box: RunningBox

  constructor(box: RunningBox) {
    this.#box = box
  }

  async read(): Promise<void> {
    for (const path of ['account', 'billing/subscription', 'senders', 'policy']) await this.#one(`/v1/${path}`)
    await this.#one('/.well-known/jwks.json')
    for (const path of ['api-keys', 'suppressions', 'people', 'accounts', 'jobs', 'events', 'audit', 'backups'])
      await this.#list(`/v1/${path}`)
    await this.#each('/v1/holds', '', (at) => this.#one(at))
    await this.#each('/v1/webhooks', '', async (at) => {
      await this.#one(at)
      await this.#each(`${at}/deliveries`, '', (delivery) => this.#one(delivery))
    })
    await this.#each('/v1/domains', '', async (at) => {
      await this.#one(at)
      await this.#text(`${at}/zone`)
      await this.#each(`${at}/aliases`, '', (alias) => this.#one(alias))
    })
    await this.#each('/v1/agents', '', async (at) => {
      await this.#one(at)
      for (const name of ['erc8004', 'did.json', 'registration.json', 'agent-card.json']) await this.#one(`${at}/${name}`)
    })
    await this.#each('/v1/identities', '', (at) => this.#identity(at))
  }

  async #identity(at: string): Promise<void> {
    for (const name of ['', '/senders', '/policy', '/reputation']) await this.#one(`${at}${name}`)
    for (const name of ['messages', 'events', 'emails?trash=true', 'sms?trash=true', 'emails/search?query=verification'])
      await this.#list(`${at}/${name}`)
    await this.#each(`${at}/emails`, 'direction=all&duplicates=true', async (email) => {
      await this.#one(email)
      await this.#text(`${email}/raw`)
      const attachments = await this.#one(`${email}/attachments`)
      for (const { index } of (attachments?.['data'] ?? []) as Item[]) await this.#file(`${email}/attachments/${String(index)}`)
    })
    await this.#each(`${at}/threads`, '', (thread) => this.#one(thread))
    await this.#each(`${at}/sms`, '', async (sms) => {
      const media = (await this.#one(sms))?.['media'] as Item[] | undefined
      for (const index of (media ?? []).keys()) await this.#file(`${sms}/media/${index}`)
    })
    await this.#each(`${at}/totp`, '', (totp) => this.#one(totp))
    for (const { id } of await this.#list(`${at}/logins`)) await this.#one(`/v1/logins/${String(id)}`)
    for (const { id } of await this.#list(`${at}/cards`)) {
      for (const name of ['', '/limits']) await this.#one(`/v1/cards/${String(id)}${name}`)
      await this.#list(`/v1/cards/${String(id)}/transactions`)
    }
  }

  async #each(list: string, query: string, read: (path: string) => Promise<unknown>): Promise<void> {
    for (const { id } of await this.#list(query === '' ? list : `${list}?${query}`)) await read(`${list}/${String(id)}`)
  }

  async #list(path: string): Promise<Item[]> {
    const items: Item[] = []
    for (let cursor = ''; ;) {
      const answer = await this.#box.ask('GET', `${path}${path.includes('?') ? '&' : '?'}limit=100${cursor}`)
      if (answer?.status !== 200 || !Array.isArray(answer.body['data'])) {
        this.answers.refuse(path, answer?.status)
        return []
      }
      items.push(...(answer.body['data'] as Item[]))
      if (typeof answer.body['next_cursor'] !== 'string') break
      cursor = `&cursor=${answer.body['next_cursor']}`
    }
    this.answers.set(path, items)
    return items
  }

  async #one(path: string): Promise<Item | undefined> {
    const answer = await this.#box.ask('GET', path)
    if (answer?.status !== 200) {
      this.answers.refuse(path, answer?.status)
      return undefined
    }
    this.answers.set(path, answer.body)
    return answer.body
  }

  async #text(path: string): Promise<void> {
    this.answers.set(path, await this.#box.text(path))
  }

  /** What is behind a signed URL. */
  async #file(path: string): Promise<void> {
    const url = (await this.#one(path))?.['url']
    if (typeof url !== 'string') return
    const response = await fetch(url)
    this.answers.set(`${path} content`, Buffer.from(await response.arrayBuffer()).toString('latin1'))
  }
}

/**
 * Where the answers of a box differ from those before it was started at this time: fields, and items that are no older, may have been added, none
 * may have gone or changed.
 */
export function differences(before: Answers, after: Answers, started: string): string[] {
  return [...before].flatMap(([path, was]) =>
    after.has(path)
      ? differencesIn(kept(was), kept(after.get(path)), { at: path, started })
      : [`${path} was answered, and is not now: ${textOf(was)}`],
  )
}

/** What may differ, at these places, and why. */
const known: { at: RegExp; why: string; holds: (was: unknown, is: unknown) => boolean }[] = [
  { at: / explanation$/, why: 'it is a sentence for people', holds: (_was, is) => typeof is === 'string' },
  { at: / dns_records \d+ seen_at$/, why: 'a box looks at the DNS', holds: (_was, is) => typeof is === 'string' },
  {
    at: / (?:storage (?:media|trash)|usage storage_bytes)$/,
    why: 'text messages and their texts count too since',
    holds: (was, is) => Number(is) >= Number(was),
  },
]

interface Place {
  at: string
  started: string
}

function differencesIn(was: unknown, is: unknown, place: Place): string[] {
  const below = (name: string): Place => ({ ...place, at: `${place.at} ${name}` })
  if (Array.isArray(was) && Array.isArray(is)) {
    const lost = lostOf(was, is, place)
    if (lost.length > 0) return lost
    const still = idOf(was[0]) === undefined ? is : was.map((item) => is.find((other) => idOf(other) === idOf(item)) as unknown)
    return was.flatMap((item, index) => differencesIn(item, still[index], below(String(index))))
  }
  if (isObject(was) && isObject(is))
    return Object.entries(was).flatMap(([name, value]) => differencesIn(value, is[name], below(name)))
  const [former, present] = [documentOf(was), documentOf(is)]
  if (former !== undefined && present !== undefined) return differencesIn(former, present, place)
  if (known.some(({ at, holds }) => at.test(place.at) && holds(was, is))) return []
  return Object.is(was, is) ? [] : [`${place.at} was ${textOf(was)} and is ${textOf(is)}`]
}

/** What is no longer in a list, or in another order, or was not there before. */
function lostOf(was: unknown[], is: unknown[], { at, started }: Place): string[] {
  if (idOf(was[0]) === undefined)
    return was.length === is.length || isNew(is, started) ? [] : [`${at} had ${was.length} items, and has ${is.length}`]
  const ids = was.map(idOf)
  const still = is.map(idOf).filter((id) => ids.includes(id))
  // the log of reads is written some time after them, also while a box stops
  const last = Math.max(...was.map(seqOf))
  const besides = is.filter((item) => !ids.includes(idOf(item)) && !(seqOf(item) > last))
  return [
    ...(still.join(' ') === ids.join(' ') ? [] : [`${at} had ${ids.join(' ')}, and of these has ${still.join(' ')}`]),
    ...(isNew(besides, started) ? [] : [`${at} has besides ${textOf(besides)}`]),
  ]
}

function isNew(items: unknown[], started: string): boolean {
  return items.every((item) => {
    const time = isObject(item) ? (item['created_at'] ?? item['at']) : undefined
    return typeof time === 'string' && time >= started
  })
}

function seqOf(item: unknown): number {
  return isObject(item) ? Number(item['seq']) : NaN
}

function idOf(item: unknown): unknown {
  return isObject(item) ? (item['id'] ?? item['seq'] ?? item['kid']) : undefined
}

/** What a text is as JSON, such as the body of a webhook. */
function documentOf(value: unknown): object | undefined {
  if (typeof value !== 'string' || !value.startsWith('{')) return undefined
  try {
    return JSON.parse(value) as object
  } catch {
    return undefined
  }
}

function textOf(value: unknown): string {
  return JSON.stringify(value)?.slice(0, 200) ?? 'absent'
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
