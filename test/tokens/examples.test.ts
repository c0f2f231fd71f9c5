import { execFile } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { appliance } from '../support/appliance.ts'
import { folder } from '../support/folder.ts'
import { absent } from '../support/peer.ts'
import { claimsOf, encoded, newKey, stolenKey, tokenOf } from '../support/tokens.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))
const page = readFileSync(join(root, 'docs/agents.md'), 'utf8')
const shop = 'https://shop.example.com'

/** What each language needs around its example: the program then says of every token in `tokens.json` its subject, or `refused`. */
const around: Record<string, { file: string; after: string; program: () => Promise<string | undefined> }> = {
  typescript: {
    file: 'check.ts',
    after: `
import { readFileSync } from 'node:fs'
for (const token of JSON.parse(readFileSync('tokens.json', 'utf8'))) {
  console.log(await check(token, '${shop}').catch(() => 'refused'))
}`,
    program: async () => process.execPath,
  },
  python: {
    file: 'check.py',
    after: `
import json

for token in json.load(open("tokens.json")):
    try:
        print(check(token, "${shop}"))
    except jwt.PyJWTError:
        print("refused")`,
    program: python,
  },
}

test('the page shows each of these once', () => {
  expect([...examples().keys()].toSorted()).toEqual(Object.keys(around).toSorted())
  expect([...examples().values()].map((list) => list.length)).toEqual([1, 1])
})

test.each(Object.keys(around))(
  'the example in %s believes what we sign, before and after a rotation, and nothing else',
  async (language) => {
    const { file, after, program } = around[language]!
    const interpreter = await program()
    if (interpreter === undefined) return
    const clock = { ahead: -700_000, now: () => Date.now() + clock.ahead }
    const box = await appliance({}, clock)
    const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
    const { body: agent } = await box.call('POST', '/v1/agents', { identity_id: ada.id })
    const issue = async (audience = shop): Promise<string> =>
      (await box.call('POST', `/v1/identities/${ada.id}/token`, { audience, expires_in: 900 })).body['token'] as string
    const early = await issue()
    clock.ahead = 0
    const former = stolenKey(box)
    expect((await box.call('POST', '/v1/signing-keys/rotate', { now: false })).status).toBe(200)
    const late = await issue()
    const claims = claimsOf(late)
    const own = stolenKey(box)
    const forged = `${encoded({ alg: 'HS256', typ: 'JWT', kid: own.kid })}.${encoded(claims)}`
    const [header, , signature] = late.split('.')
    const wrong = [
      await issue('https://other.example'),
      `${header}.${encoded({ ...claims, sub: 'did:web:victim.example' })}.${signature}`,
      `${encoded({ alg: 'none', typ: 'JWT', kid: own.kid })}.${encoded(claims)}.`,
      `${forged}.${createHmac('sha256', Buffer.from(own.x, 'base64url')).update(forged).digest('base64url')}`,
      `${forged}.${createHmac('sha256', own.x).update(forged).digest('base64url')}`,
      tokenOf({ ...newKey(), kid: own.kid }, claims),
      tokenOf(newKey(), claims),
      tokenOf(own, { ...claims, exp: Number(claims['iat']) - 31 }),
      tokenOf(own, { ...claims, iss: 'https://other.example' }),
    ]
    // the first was signed by the key that has retired since
    expect(claimsOf(early)['sub']).toBe(agent.did)
    expect(former.kid).not.toBe(own.kid)
    const directory = folder()
    mkdirSync(join(directory, 'node_modules'))
    symlinkSync(join(root, 'node_modules/jose'), join(directory, 'node_modules/jose'))
    writeFileSync(join(directory, 'package.json'), '{"type": "module"}')
    writeFileSync(join(directory, file), `${examples().get(language)![0]}${after}\n`)
    writeFileSync(join(directory, 'tokens.json'), JSON.stringify([early, late, ...wrong]))
    const { stdout } = await run(interpreter, [file], { cwd: directory, env: { ...process.env, ISSUER: box.url, NO_COLOR: '1' } })
    expect(stdout.trim().split('\n')).toEqual([agent.did, agent.did, ...wrong.map(() => 'refused')])
  },
)

/** The interpreter of the distribution, which has the library. */
async function python(): Promise<string | undefined> {
  const path = '/usr/bin/python3'
  const has =
    existsSync(path) &&
    (await run(path, ['-c', 'import jwt, cryptography']).then(
      () => true,
      () => false,
    ))
  return has ? path : absent('PyJWT', 'PyJWT is not installed (apt-get install python3-jwt python3-cryptography)')
}

/** The page's fenced blocks in these languages, by the text after the fence. */
function examples(): Map<string, string[]> {
  const blocks = [...page.matchAll(/^```([^\n]+)\n(.*?)^```$/gms)].map(([, language, code]) => ({
    language: language!,
    code: code!,
  }))
  const grouped = Map.groupBy(
    blocks.filter(({ language }) => language in around),
    ({ language }) => language,
  )
  return new Map([...grouped].map(([language, list]) => [language, list.map(({ code }) => code)]))
}
