import { createHash, randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { keyHash, newKey } from '../../src/accounts/secret.ts'
import { iso } from '../../src/core/clock.ts'
import { newId } from '../../src/core/ids.ts'
import { type Scope, scopes } from '../../src/core/scopes.ts'
import type { AnyRoute } from '../../src/http/route.ts'
import { type Appliance, openAppliance } from '../support/appliance.ts'
import { openStore, type Store } from '../support/open-store.ts'
import { withPassword } from '../support/people.ts'
import { type Estate, settle, until } from './estate.ts'
import { plantedHoldLink, plantedInvitation, plantedLink } from './planted-people.ts'

/** What a box needs for people to live on it, in this process or another. */
export type Habitable = Pick<Appliance, 'url' | 'key' | 'smtp' | 'dns' | 'directory' | 'call' | 'settled'>

/** Two accounts, and in the first a second identity beside the one most tests look at. */
export interface Estates {
  own: Estate
  /** In the same account, another identity. */
  sibling: Estate
  foreign: Estate
}

/** A box that people live on. */
export interface Inhabited<Box extends Habitable = Appliance> extends Estates {
  box: Box
  routes: readonly AnyRoute[]
  /** A key written straight into the store, which can be what the API would refuse to make. */
  plantKey: (input: PlantedKey) => Promise<string>
  /** A session written straight into the store, of the first owner unless said; answers the cookie that a browser would send. */
  plantSession: (account: string, personId?: string) => Promise<string>
  /** A link to set the first password of an account that has none; answers its token. */
  plantLink: () => Promise<string>
  /** An invitation to the first account; answers its token. */
  plantInvitation: () => Promise<string>
  /** A link by which a person decides a hold; answers its token. */
  plantHoldLink: (holdId: string) => Promise<string>
  /** One more estate in the first account, to be used up. */
  settle(name: string): Promise<Estate>
  database: Store
  close(): Promise<void>
}

export interface PlantedKey {
  account: string
  scopes?: readonly Scope[]
  identity?: string
  expires_at?: string
  revoked_at?: string
  rate_limit?: number
}

/** Limits of rates that no test meets. */
export const manyCalls = {
  PILLARBOX_HTTP__RATE_LIMIT: '1000000',
  PILLARBOX_HTTP__PUBLIC_RATE_LIMIT: '1000000',
  PILLARBOX_HTTP__DOCUMENT_RATE_LIMIT: '1000000',
  PILLARBOX_HTTP__SIGN_IN_RATE_LIMIT: '1000000',
  PILLARBOX_BACKUP__DIRECTORY: './backups',
}

/** How the person of the first account signs in. */
export const person = { email: 'ada@example.com', password: 'a long and quiet evening' }

/** Starts the box and settles it. Rate limits are on, and too high to be met. */
export async function inhabit(env: Record<string, string> = {}): Promise<Inhabited> {
  const { box, close } = await openAppliance({ ...manyCalls, ...env })
  mkdirSync(join(box.directory, 'backups'))
  const database = openStore(databaseOf(box), { timeout: 60_000 })
  await withPassword(box, person)
  return {
    ...inhabitedBy(await settleEstates(box, database), { box, database, routes: box.app.routes }),
    // also where a call would store nothing
    plantLink: async () => {
      const name = newId('acct')
      const { id } = await box.app.accounts.add({ ...person, name, email: `${name}@example.com` })
      return plantedLink(databaseOf(box), id)
    },
    close: async () => {
      // a test may have closed it
      database[Symbol.dispose]()
      await close()
    },
  }
}

/** Settles a box whose account has a person. */
export async function settleEstates(box: Habitable, database: Store): Promise<Estates> {
  const { account_id } = database.prepare('SELECT account_id FROM api_keys').get() as { account_id: string }
  const { id: foreignAccount } = await addedAccount(box, 'Foreign', 'grace@example.com')
  const foreignKey = await plantedKey(box, database, { account: foreignAccount })
  return {
    own: await settle(box, database, { key: box.key, account: account_id, name: 'Own' }),
    sibling: await settle(box, database, { key: box.key, account: account_id, name: 'Sibling' }),
    foreign: await settle(box, database, { key: foreignKey, account: foreignAccount, name: 'Foreign' }),
  }
}

/** What tests do on a box that was settled, besides calling it. */
export function inhabitedBy<Box extends Habitable>(
  estates: Estates,
  { box, database, routes }: Pick<Inhabited<Box>, 'box' | 'database' | 'routes'>,
): Omit<Inhabited<Box>, 'close'> {
  const { account } = estates.own
  return {
    box,
    routes,
    ...estates,
    plantKey: (input) => plantedKey(box, database, input),
    plantSession: async (of, personId) => {
      const cookie = `pillarbox=${plantedSession(database, of, personId)}`
      await until(
        async () => (await box.call('GET', '/v1/account', undefined, { key: null, headers: { Cookie: cookie } })).status !== 401,
      )
      return cookie
    },
    plantLink: async () => {
      const name = newId('acct')
      const { id } = await addedAccount(box, name, `${name}@example.com`)
      return plantedLink(databaseOf(box), id)
    },
    plantInvitation: async () => {
      const { id, token } = plantedInvitation(database, account)
      await until(async () => JSON.stringify((await box.call('GET', '/v1/people/invitations')).body).includes(id))
      return token
    },
    plantHoldLink: async (holdId) => {
      const token = plantedHoldLink(database, holdId)
      await until(async () => (await box.call('POST', '/v1/hold-links/read', { token }, { key: null })).status !== 403)
      return token
    },
    settle: (name) => settle(box, database, { key: box.key, account, name }),
    database,
  }
}

function databaseOf({ directory }: Habitable): string {
  return join(directory, 'data', 'pillarbox.db')
}

/** An account with one person, its owner. */
export async function addedAccount(box: Habitable, name: string, email: string): Promise<{ id: string }> {
  const { status, body } = await box.call('POST', '/v1/accounts', { ...person, name, email })
  if (status !== 201) throw new Error(`The account was not added: ${JSON.stringify(body)}`)
  return { id: body['id'] as string }
}

export async function plantedKey(box: Habitable, database: Store, input: PlantedKey): Promise<string> {
  const key = plant(database, input)
  if (input.revoked_at === undefined && input.expires_at === undefined)
    await until(async () => (await box.call('GET', '/v1/identities', undefined, { key })).status !== 401)
  return key
}

function plant(database: Store, input: PlantedKey): string {
  const key = newKey()
  database
    .prepare(
      `INSERT INTO api_keys (id, account_id, label, scopes, key_prefix, hash, identity_id, rate_limit, created_at, expires_at, revoked_at)
        VALUES (?, ?, 'planted', ?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    .run(
      newId('key'),
      input.account,
      JSON.stringify(input.scopes ?? scopes),
      key.slice(0, 12),
      keyHash(key),
      input.identity ?? null,
      input.rate_limit ?? 1_000_000,
      iso(Date.now()),
      input.expires_at ?? null,
      input.revoked_at ?? null,
    )
  return key
}

function plantedSession(database: Store, account: string, personId?: string): string {
  const token = randomBytes(32).toString('base64url')
  const hash = createHash('sha256').update(token).digest('base64url')
  const now = iso(Date.now())
  const whose = personId === undefined ? "role = 'owner'" : 'id = ?'
  database
    .prepare(
      `INSERT INTO sessions (id, account_id, person_id, hash, ip, user_agent, created_at, last_used_at)
        SELECT ?, account_id, id, ?, '', '', ?, ? FROM logins WHERE account_id = ? AND ${whose} ORDER BY seq LIMIT 1`,
    )
    .run(newId('sess'), hash, now, now, account, ...(personId === undefined ? [] : [personId]))
  return token
}
