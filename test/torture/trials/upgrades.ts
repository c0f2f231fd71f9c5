import { existsSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { iso } from '../../../src/core/clock.ts'
import { freePort } from '../../support/free-port.ts'
import { type Random, randomFrom } from '../../support/random.ts'
import { faultsOfLog } from '../box/log.ts'
import { faultsInBackup } from '../box/oracle.ts'
import { type RunningBox, World } from '../box/world.ts'
import { type Cases, caseSeed, type CaseResult, type Setting, type Trial } from '../trial.ts'
import { type Answers, differences, readAnswers } from '../upgrades/answers.ts'
import { fill, type Filled } from '../upgrades/fill.ts'
import { fetchPackages, leftOut, noHistory, type Release, releases, unpack } from '../upgrades/releases.ts'
import { faultsOfUse } from '../upgrades/still-works.ts'

/** Milliseconds in which a box does all that it was asked for. */
const patience = 60_000

export const upgrades: Trial = {
  name: 'upgrades',
  about:
    'A box of each former form of the data that the main line had and that can still be started (the last commit before each migration, with the packages of ' +
    'its time; the notes name those left out, and why) is filled with all that it ' +
    'knows: identities, mail in and out, threads, text messages, one-time passwords, cards, logins, domains, keys, webhooks, agents, tokens, reports, people ' +
    'with second factors and sessions, policies and holds, exports and backups. It is stopped or killed, and the box of now opens its data, in some cases ' +
    'killed while it does. It answers every list and every object that the former answered with 200 (the notes name the other paths) as the former did but for what was added since, secrets, sessions, tokens and idempotency ' +
    'keys work on, every identity is exported, a backup verifies, and the box logs no error. The copy from before the upgrade, put back, is served by the ' +
    'former box as before.',
  goal: { tries: 100, unit: 'upgrades', faults: 'each opens, serves, exports, with the same answers' },
  // that of one form, without history, is test/ops/backup/fixture.test.ts
  short: 0,
  hours: 1.75,
  broken: {
    'lost-column': {
      what: 'a migration does not take over where the secrets of one-time passwords are',
      file: 'src/store/migrations/0060_totp_slots.sql',
      find: 'UPDATE totp_entries SET secret_slot = seq;\n',
      replace: '',
    },
    'other-slots': {
      what: 'after a migration every card has the secret of the newest',
      file: 'src/store/migrations/0059_card_slots.sql',
      find: "UPDATE cards SET secret_slot = seq WHERE status <> 'cancelled';",
      replace: "UPDATE cards SET secret_slot = (SELECT max(slot) FROM card_secrets) WHERE status <> 'cancelled';",
    },
    'fewer-rows': {
      what: 'a migration leaves out the people who have a second factor',
      file: 'src/store/migrations/0054_people.sql',
      find: 'FROM logins ORDER BY account_id;',
      replace: 'FROM logins WHERE second_factor IS NULL ORDER BY account_id;',
    },
  },
  missing: noHistory,
  fetch: fetchPackages,
  async open({ directory, program, seed }: Setting): Promise<Cases> {
    const trial = new Upgrades(releases(), { directory, program, seed })
    return {
      run: (number) => trial.run(number),
      notes: () => trial.notes(),
      close: async () => undefined,
    }
  },
}

class Upgrades {
  readonly #releases: Release[]
  readonly #setting: Setting
  readonly #tried = new Map<Release, { answers: Answers; unknown: string[] }>()

  constructor(all: Release[], setting: Setting) {
    this.#releases = all
    this.#setting = setting
  }

  /** Each release in turn, from one that the seed says. */
  async run(number: number): Promise<CaseResult> {
    const { directory, seed } = this.#setting
    const random = randomFrom(caseSeed(seed, number))
    const release = this.#releases[(number + seed) % this.#releases.length]!
    const program = join(directory, `program-${release.version}`)
    if (!existsSync(program)) await unpack(release, program)
    const place = join(directory, `case-${number}`)
    const world = await World.open(place, program, random)
    try {
      const faults = await this.#upgrade(world, release, random)
      return {
        tries: 1,
        faults: faults.map((fault) => `from version ${release.version} (${release.commit.slice(0, 8)}): ${fault}`),
      }
    } finally {
      await world.close()
      rmSync(place, { recursive: true, force: true })
    }
  }

  notes(): string[] {
    const tried = [...this.#tried].toSorted(([one], [other]) => one.version - other.version)
    return [
      `${tried.length} of ${this.#releases.length} former forms of the data, of versions ${tried.map(([{ version }]) => version).join(', ')}`,
      ...leftOut(this.#releases).map((why) => `left out: ${why}`),
      ...tried.map(
        ([{ version, commit }, { answers, unknown }]) =>
          `version ${version} (${commit.slice(0, 8)}): ${answers.size} answers compared${unknown.length === 0 ? '' : `; it does not know ${unknown.join(', ')}`}${notCompared(answers)}`,
      ),
    ]
  }

  async #upgrade(former: World, release: Release, random: Random): Promise<string[]> {
    const home = former.home('box')
    // its URL is the issuer of its tokens
    const env = { PILLARBOX_HTTP__LISTEN: `127.0.0.1:${await freePort()}`, PILLARBOX_SMS__PROVIDER: 'loopback' }
    let box = await former.start(home, env)
    let filled: Filled
    let before: Answers
    try {
      filled = await fill(box, former, random)
      before = await quietAnswers(box)
      this.#tried.set(release, { answers: before, unknown: filled.unknown })
    } finally {
      await box.process.end(random(2) === 0 ? 'SIGTERM' : 'SIGKILL')
    }
    const started = iso(Date.now())
    const now = former.of(this.#setting.program)
    while (random(3) === 0) {
      const process = now.begin(home, env)
      await Promise.race([process.said('started').catch(() => undefined), sleep(random(1500))])
      await process.end('SIGKILL')
    }
    try {
      box = await now.start(home, env)
    } catch (error) {
      return [`it does not open: ${(error as Error).message.slice(-500)}`]
    }
    try {
      const after = await readAnswers(box)
      const faults = [
        ...differences(before, after, started),
        ...(await faultsOfUse(box, filled)),
        ...(await faultsInBackup(now, home)),
        ...faultsOfLog(box),
      ]
      const status = await box.process.end('SIGTERM')
      if (status !== 0) faults.push(`the box ended with ${status}`)
      faults.push(...faultsOfFile(join(home, 'data', 'pillarbox.db')))
      return [...faults, ...(await faultsOfReturn(former, { home, env, before }))]
    } finally {
      await box.process.end('SIGKILL')
    }
  }
}

/** The calls that the former box did not answer with 200, each without the ids in it. */
function notCompared({ refused }: Answers): string {
  return refused.size === 0 ? '' : `; not compared, as it did not answer them with 200: ${[...refused].toSorted().join(', ')}`
}

/** Puts the copy from before the upgrade in the place of the database: the former box goes on with it. */
async function faultsOfReturn(
  former: World,
  { home, env, before }: { home: string; env: Record<string, string>; before: Answers },
): Promise<string[]> {
  const file = join(home, 'data', 'pillarbox.db')
  const copy = readdirSync(join(home, 'data')).find((name) => name.startsWith('pillarbox.db.before-'))
  if (copy === undefined) return ['there is no copy from before the upgrade']
  for (const end of ['', '-wal', '-shm']) rmSync(`${file}${end}`, { force: true })
  renameSync(join(home, 'data', copy), file)
  const started = iso(Date.now())
  const box = await former.start(home, env)
  const faults = differences(before, await readAnswers(box), started)
  await box.process.end('SIGTERM')
  return faults.map((fault) => `back on the former program: ${fault}`)
}

/** What a box answers once it has done all that it was asked for. */
async function quietAnswers(box: RunningBox): Promise<Answers> {
  let last = await readAnswers(box)
  for (const end = Date.now() + patience; Date.now() < end;) {
    await sleep(200)
    const next = await readAnswers(box)
    if (differences(last, next, iso(Date.now())).length === 0 && next.size === last.size) return next
    last = next
  }
  throw new Error('The box of before does not come to rest.')
}

function faultsOfFile(file: string): string[] {
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    return ['integrity_check', 'foreign_key_check'].flatMap((check) => {
      const rows = database.prepare(`PRAGMA ${check}`).all()
      const good = check === 'integrity_check' ? rows[0]?.['integrity_check'] === 'ok' : rows.length === 0
      return good ? [] : [`${check}: ${JSON.stringify(rows[0])}`]
    })
  } finally {
    database.close()
  }
}
