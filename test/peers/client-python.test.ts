import { execFile, execFileSync, spawn } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { cpSync, globSync, readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { homedir } from 'node:os'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { decryptCard, encryptCard, newCardKey } from '../../clients/typescript/src/index.ts'
import { routePaths } from '../../src/http/route.ts'
import { Network } from '../clients/support.ts'
import { Asking, isReadOnly } from '../contract/asking.ts'
import { inhabit } from '../contract/inhabited.ts'
import { appliance, deliver, message } from '../support/appliance.ts'
import { folder } from '../support/folder.ts'
import { freePort } from '../support/free-port.ts'
import { WebhookSink } from '../support/webhook-sink.ts'
import { PythonClient, pythonProgram, sources } from './python-client.ts'

const world = await inhabit()
const asking = new Asking(world)
const python = new PythonClient()
afterAll(async () => {
  python.close()
  await world.close()
})
const { url } = world.box
const { key } = world.own
const both = [
  ['waiting', false],
  ['asyncio', true],
] as const

const named = routePaths(world.box.app.routes).filter(({ route, alias }) => route.sdk !== undefined && !alias)

test('its types hold', () => {
  expect(execFileSync(pythonProgram('mypy'), ['--strict', sources], { encoding: 'utf8' })).toMatch(/^Success/)
})

/** Versions of Python that are installed here, also by pyenv, each with its program. */
const pythons = new Map(
  globSync(['/usr/bin/python3.*', `${homedir()}/.pyenv/versions/*/bin/python3.*`])
    .filter((path) => /\.\d+$/.test(path))
    .map((path) => [basename(path), path]),
)
const [, least] = /requires-python = ">=3\.(\d+)"/.exec(readFileSync(`${sources}/../../pyproject.toml`, 'utf8'))!

test('it has no syntax, and no type of the standard library, that the oldest version which it names does not have', () => {
  const check = `import ast, pathlib, sys
for file in pathlib.Path(sys.argv[1]).glob('*.py'):
    ast.parse(file.read_text(), str(file), feature_version=(3, ${least}))`
  execFileSync(pythonProgram('python'), ['-c', check, sources])
  const typed = execFileSync(pythonProgram('mypy'), ['--strict', '--python-version', `3.${least}`, sources], { encoding: 'utf8' })
  expect(typed).toMatch(/^Success/)
})

test.each([...pythons].filter(([name]) => Number(name.slice('python3.'.length)) >= Number(least)))(
  'pip installs it into a fresh environment of %s, where it works without its tests and sources',
  async (_, interpreter) => {
    const venv = folder()
    const run = promisify(execFile)
    await run(interpreter, ['-m', 'venv', venv])
    // as a user does it: built from a copy, so that nothing is written here
    const copy = join(folder(), 'python')
    cpSync(`${sources}/../..`, copy, { recursive: true })
    const pip = [`${venv}/bin/pip`, ['install', '--quiet', '--disable-pip-version-check', copy]] as const
    await run(...pip)
    const { body: ada } = await world.box.call('POST', '/v1/identities', {})
    const raw = message({ From: 'a@shop.test' }, 'Your verification code is 482913.\n')
    await deliver(world.box.smtp, { to: ada.email, raw })
    const program = `import asyncio, os, importlib.resources, pillarbox
box, ada = (os.environ["URL"], os.environ["KEY"]), os.environ["ID"]
wanted = {"identity": ada, "types": ["email.received"], "since": "1970-01-01T00:00:00Z"}
with pillarbox.Pillarbox(*box) as client:
    print(client.account.whoami()["scopes"] != [], importlib.resources.files(pillarbox).joinpath("py.typed").is_file())
    print(client.wait_for_code(ada)["code"], next(iter(client.events(**wanted)))["type"], len(list(client.emails.iterate(ada))))
async def later():
    async with pillarbox.AsyncPillarbox(*box) as client:
        async for event in client.events(**wanted):
            print(event["type"], [row["codes"] async for row in client.emails.iterate(ada)])
            return
asyncio.run(later())
try:
    pillarbox.new_card_key()
    pillarbox.encrypt_card(pillarbox.new_card_key(), {"number": "4242424242424242"})
except pillarbox.PillarboxError as error:
    print(error.code)`
    const { stdout } = await run(`${venv}/bin/python`, ['-c', program], { cwd: venv, env: { URL: url, KEY: key, ID: ada.id } })
    expect(stdout).toBe("True True\n482913 email.received 1\nemail.received [['482913']]\nno_cryptography\n")
  },
)

// each call can be made once in this world: every other one is made with asyncio
const spread = named.map((spelling, index) => [spelling.route.sdk!, ...both[index % 2]!, spelling] as const)

test.each(spread)('%s answers (%s)', async (sdk, _how, asyncio, spelling) => {
  const { method, path: declared, route } = spelling
  const estate = isReadOnly(spelling) ? world.own : await world.settle(`${method} ${declared}`)
  const { path, question } = await asking.good(spelling, estate)
  const real = path.split('/')
  const ids = declared.split('/').flatMap((part, index) => (part.startsWith(':') ? [real[index]!] : []))
  const octets = route.upload && { octets: Buffer.from(question.body as string).toString('base64') }
  const input = octets ?? question.body ?? question.query ?? {}
  const args = [...ids, ...(route.query || route.body || route.upload ? [input] : [])]
  const name = sdk.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
  const told = await python.call({ url, key: estate.key, method: name, args, options: { timeout: 55, retries: 0 }, asyncio })
  expect(told.error).toBeUndefined()
  if (route.download?.startsWith('text/')) expect(told.answer).toBeTypeOf('string')
  else if (route.download) expect(told.answer).toHaveProperty('octets')
  else expect(told.answer).toBeTypeOf('object')
})

test.each(both)('a list is iterated to its end (%s)', async (_how, asyncio) => {
  const { answer: rows } = await python.call({
    url,
    key,
    method: 'identities.iterate',
    args: [{ limit: 3 }],
    asyncio,
    iterate: true,
  })
  const { answer: page } = await python.call({ url, key, method: 'identities.list', args: [{ limit: 200 }], asyncio })
  expect(rows.length).toBeGreaterThan(3)
  expect(rows.map(({ id }: { id: string }) => id)).toEqual(page.data.map(({ id }: { id: string }) => id))
})

test.each(both)('errors have a class, a code, the parameter and the id of the request (%s)', async (_how, asyncio) => {
  const failing = async (method: string, args: unknown[], by = key) =>
    (await python.call({ url, key: by, method, args, asyncio })).error
  expect(await failing('identities.get', ['ident_01jd3v8m2ef1pbx9mz5k7q4w6a'])).toMatchObject({
    class: 'NotFoundError',
    status: 404,
    request_id: expect.stringMatching(/^req_/) as unknown,
  })
  expect(await failing('identities.create', [{ metadata: 'x' }])).toMatchObject({
    class: 'InvalidRequestError',
    param: 'metadata',
  })
  expect(await failing('identities.list', [], 'pbx_wrong')).toMatchObject({ class: 'UnauthorizedError', status: 401 })
  expect(await failing('identities.get', ['..'])).toMatchObject({ code: 'invalid_id', param: 'identity_id' })
  const nobody = `http://127.0.0.1:${await freePort()}`
  const lost = await python.call({ url: nobody, key, method: 'identities.list', args: [], options: { retries: 0 }, asyncio })
  expect(lost.error).toMatchObject({ class: 'ConnectionError', code: 'connection_failed' })
})

/** A box whose first answers are these: a status, with a body or without, or `lost`: what the network says after the box has done its work. */
async function faulty(
  ...first: (number | [status: number, body: string] | 'lost')[]
): Promise<{ url: string; keys: (string | undefined)[] }> {
  const keys: (string | undefined)[] = []
  const hear = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    keys.push(request.headers['idempotency-key'] as string | undefined)
    const body = Buffer.concat(await request.toArray())
    const instead = first.shift()
    if (instead !== undefined && instead !== 'lost') {
      const [status, told] = typeof instead === 'number' ? [instead, '<html>'] : instead
      response.writeHead(status, { 'Retry-After': '0' }).end(told)
      return
    }
    const headers = { ...(request.headers as Record<string, string>) }
    for (const name of ['host', 'connection', 'content-length']) delete headers[name]
    const answer = await fetch(`${url}${request.url}`, { method: request.method!, headers, ...(body.length > 0 ? { body } : {}) })
    const text = await answer.text()
    if (instead === 'lost') request.socket.destroy()
    else response.writeHead(answer.status, { 'Content-Type': 'application/json' }).end(text)
  }
  const server = createServer((request, response) => void hear(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, keys }
}

test.each(both)(
  'a call is repeated with its own key and has one effect; what a lost answer deleted is deleted (%s)',
  async (how, asyncio) => {
    const network = await faulty(502, 'lost')
    const name = `Once ${how}`
    const { answer: made } = await python.call({ url: network.url, key, method: 'identities.create', args: [{ name }], asyncio })
    expect(network.keys).toHaveLength(3)
    expect(new Set(network.keys).size).toBe(1)
    expect(network.keys[0]).toMatch(/^[0-9a-f-]{36}$/)
    const { answer: listed } = await python.call({ url, key, method: 'identities.list', args: [{ query: name }], asyncio })
    expect(listed.data.map(({ id }: { id: string }) => id)).toEqual([made.id])
    const remove = { key, method: 'identities.delete', args: [made.id], asyncio }
    expect(await python.call({ ...remove, url: (await faulty('lost')).url })).toEqual({ answer: { id: made.id, deleted: true } })
    expect((await python.call({ ...remove, url: (await faulty(429)).url })).error.class).toBe('NotFoundError')
  },
)

test.each(both)(
  'an answer that is not of a box is an error that says so, and passes where it may (%s)',
  async (_how, asyncio) => {
    const list = { key, method: 'identities.list', args: [], asyncio }
    const bodies = [
      'null',
      '{"error":"Bad Gateway"}',
      '{"error":{"message":"Bad Gateway","code":502}}',
      '{"error":{"code":"bad_gateway"}}',
    ]
    for (const body of bodies) {
      const { error } = await python.call({ ...list, url: (await faulty([502, body])).url, options: { retries: 0 } })
      expect(error).toMatchObject({ class: 'ServerError', code: 'http_502', status: 502 })
    }
    const portal = await faulty(200, [200, '\ufeff'])
    expect((await python.call({ ...list, url: portal.url, options: { retries: 0 } })).error).toMatchObject({
      class: 'ConnectionError',
      code: 'connection_failed',
      message: expect.stringContaining(portal.url) as unknown,
    })
    expect((await python.call({ ...list, url: portal.url })).answer.data).toBeInstanceOf(Array)
  },
)

test.each(both)(
  'none of the events is lost and none comes twice when the connection is cut and the box restarted (%s)',
  async (_how, asyncio) => {
    const network = await Network.start()
    network.target = await freePort()
    const box = await appliance({ PILLARBOX_PUBLIC_URL: network.url, PILLARBOX_HTTP__LISTEN: `127.0.0.1:${network.target}` })
    const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
    const follower = new PythonClient()
    onTestFinished(() => follower.close())
    const options = { types: ['email.received'], identity: ada.id }
    const job = { url: network.url, key: box.key, method: 'events', args: [20], options, asyncio }
    expect(await follower.call(job)).toEqual({ ready: true })
    const done = follower.next()
    const sent: string[] = []
    for (let round = 0; round < 5; round += 1) {
      network.allowance = 300 + 1500 * round
      for (let index = 0; index < 4; index += 1) {
        sent.push(`Number ${sent.length}`)
        await deliver(box.smtp, { to: ada.email, raw: message({ Subject: sent.at(-1)! }, 'x\n') })
      }
      if (round === 2) await box.restart()
      network.cut()
      network.allowance = Infinity
    }
    const { answer } = await done
    expect(answer.events.map(({ data }: { data: { subject: string } }) => data.subject)).toEqual(sent)
    expect(answer.cuts.length).toBeGreaterThan(0)
  },
)

test('a program that leaves the loop of its events goes on after the last in the next loop', async () => {
  const { box } = world
  const { body: ada } = await box.call('POST', '/v1/identities', {})
  const since = (await box.call('GET', '/v1/events?limit=1')).body.data[0].id as string
  for (let index = 0; index < 5; index += 1) await box.call('PATCH', `/v1/identities/${ada.id}`, { metadata: { at: index } })
  const script = `import os, asyncio, itertools, pillarbox
given = {"identity": os.environ["ID"], "types": ["identity.updated"], "since": os.environ["SINCE"]}
with pillarbox.Pillarbox(os.environ["URL"], os.environ["KEY"]) as client:
    stream = client.events(**given)
    print([event["data"]["metadata"]["at"] for count in (2, 1, 2) for event in itertools.islice(stream, count)])
async def later():
    async with pillarbox.AsyncPillarbox(os.environ["URL"], os.environ["KEY"]) as client:
        stream, found = client.events(**given), []
        for count in (2, 1, 2):
            async for event in stream:
                found.append(event["data"]["metadata"]["at"])
                count -= 1
                if count == 0:
                    break
        print(found)
asyncio.run(later())`
  const env = { PYTHONPATH: `${sources}/..`, URL: url, KEY: key, ID: ada.id, SINCE: since }
  const { stdout } = await promisify(execFile)(pythonProgram('python'), ['-c', script], { env })
  expect(stdout).toBe('[0, 1, 2, 3, 4]\n[0, 1, 2, 3, 4]\n')
})

test.each(both)('a code is waited for, and none is a TimeoutError (%s)', async (how, asyncio) => {
  const { box } = world
  const { body: ada } = await box.call('POST', '/v1/identities', { name: how })
  const raw = message({ Subject: 'Your code', From: 'a@shop.test' }, 'Your verification code is 482913.\n')
  await deliver(box.smtp, { to: ada.email, raw })
  const wait = { url, key, method: 'wait_for_code', asyncio, args: [ada] }
  const { answer } = await python.call({ ...wait, options: { subject: 'code', timeout: 30 } })
  expect(answer).toMatchObject({ code: '482913', item: { subject: 'Your code' } })
  expect((await python.call({ ...wait, options: { sender: 'nobody', timeout: 1 } })).error).toMatchObject({
    class: 'TimeoutError',
    code: 'no_message',
  })
})

test('a clock that is ahead loses no message with the answer that is lost', async () => {
  const { box } = world
  const script = `import asyncio, datetime, os, time
class Ahead(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return super().now(tz) + datetime.timedelta(minutes=5)
datetime.datetime = Ahead
real = time.time
time.time = lambda: real() + 300
import pillarbox
given = os.environ["KEY"]
with pillarbox.Pillarbox(os.environ["FIRST"], given) as client:
    print(client.wait_for_message(os.environ["ADA"], timeout=8)["item"]["subject"])
async def later():
    async with pillarbox.AsyncPillarbox(os.environ["SECOND"], given) as client:
        print((await client.wait_for_message(os.environ["BOB"], timeout=8))["item"]["subject"])
asyncio.run(later())`
  const [ada, bob] = [await box.call('POST', '/v1/identities', {}), await box.call('POST', '/v1/identities', {})]
  for (const { body } of [ada, bob]) await deliver(box.smtp, { to: body.email, raw: message({ Subject: 'Lost once' }, 'x\n') })
  const networks = [await faulty('lost'), await faulty('lost')]
  const [FIRST, SECOND] = networks.map((network) => network.url)
  const env = { PYTHONPATH: `${sources}/..`, FIRST, SECOND, KEY: key, ADA: ada.body.id, BOB: bob.body.id }
  const { stdout } = await promisify(execFile)(pythonProgram('python'), ['-c', script], { env })
  expect(stdout).toBe('Lost once\nLost once\n')
  // the wait whose answer was lost, a call for the time of the box, and the wait again
  expect(networks.map(({ keys }) => keys.length)).toEqual([3, 3])
})

const details = { number: '4242424242424242', exp_month: 8, exp_year: 2039, security_code: '123', holder: 'Zoë 🎉' }

test('a card encrypted by one client is read by the other', async () => {
  const cardKey = newCardKey()
  const { answer: sealed } = await python.call({ method: 'encrypt_card', args: [cardKey, details] })
  expect(await decryptCard(cardKey, sealed)).toEqual(details)
  const read = { method: 'decrypt_card', args: [cardKey, await encryptCard(cardKey, details)] }
  expect(await python.call(read)).toEqual({ answer: details })
  const other = await python.call({ ...read, args: [newCardKey(), read.args[1]] })
  expect(other.error.code).toBe('card_unreadable')
  expect((await python.call({ ...read, args: ['AAAA', read.args[1]] })).error).toMatchObject({
    code: 'bad_card_key',
    param: 'card_key',
  })
})

test.each(both)('a card with a number is encrypted on its way, and without a card key not sent (%s)', async (how, asyncio) => {
  const cardKey = newCardKey()
  const { body: ada } = await world.box.call('POST', '/v1/identities', { name: `Owner ${how}` })
  const create = {
    url,
    key,
    method: 'cards.create',
    args: [ada.id, { ...details, label: 'travel', budget_cents: 5000 }],
    asyncio,
  }
  expect((await python.call(create)).error.code).toBe('no_card_key')
  const { answer: card, error } = await python.call({ ...create, card_key: cardKey })
  expect(error).toBeUndefined()
  expect(card).toMatchObject({ last4: '4242', brand: 'visa', card_name: 'travel', budget_cents: 5000 })
  const reveal = { url, key, method: 'cards.reveal', args: [card.id, { amount_cents: 1, purpose: 'train' }], asyncio }
  const { answer: revealed } = await python.call(reveal)
  expect(await decryptCard(cardKey, revealed.encrypted_data)).toEqual(details)
})

function verify(args: unknown[]) {
  return python.call({ method: 'verify_webhook', args })
}

test('a delivery of a box is verified, and only that', async () => {
  const box = await appliance({ PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8' })
  const sink = await WebhookSink.start()
  const { body: webhook } = await box.call('POST', '/v1/webhooks', { url: sink.url, events: ['identity.created'] })
  await box.call('POST', '/v1/identities', { name: 'Grüße 🎉' })
  const [{ raw, headers }] = (await sink.until(1)) as [(typeof sink.received)[0]]
  expect((await verify([raw, headers, webhook.secret])).answer.data.name).toBe('Grüße 🎉')
  for (const [code, ...args] of [
    ['webhook_forged', raw.replace('Grüße', 'Gruss'), headers, webhook.secret],
    ['webhook_forged', raw, headers, 'whsec_AAAA'],
    ['webhook_forged', raw, { ...headers, 'webhook-signature': 'v1,???? v1,é' }, webhook.secret],
    ['webhook_too_old', raw, { ...headers, 'webhook-timestamp': '1700000000' }, webhook.secret],
    ['webhook_too_old', raw, { ...headers, 'webhook-timestamp': 'nan' }, webhook.secret],
    ['webhook_unsigned', raw, {}, webhook.secret],
  ] as const)
    expect((await verify(args)).error.code).toBe(code)
})

test('a secret that is none verifies nothing, also not what was signed with no key', async () => {
  const timestamp = String(Math.floor(Date.now() / 1000))
  const signature = createHmac('sha256', '').update(`msg_1.${timestamp}.{}`).digest('base64')
  const headers = { 'webhook-id': 'msg_1', 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` }
  for (const secret of ['', 'whsec_', 'whsec_no base64?'])
    expect((await verify(['{}', headers, secret])).error.code).toBe('bad_secret')
})

test('the block of its page runs', async () => {
  const box = await appliance()
  const page = readFileSync(`${sources}/../../README.md`, 'utf8')
  const [, block] = /```python\n([^]*?)```/.exec(page)!
  const env = { PYTHONPATH: `${sources}/..`, PILLARBOX_URL: box.url, PILLARBOX_API_KEY: box.key, PYTHONUNBUFFERED: '1' }
  const program = spawn(pythonProgram('python'), ['-c', block!], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void program.kill())
  let said = ''
  for await (const piece of program.stdout.setEncoding('utf8')) {
    const before = said
    said += String(piece)
    const [, to] = /sign up with (\S+)\n/.exec(said) ?? []
    if (to !== undefined && !before.includes('\n')) {
      const raw = message({ From: 'Shop <hello@shop.test>', Subject: 'Welcome' }, 'Your sign-up code is 493817.\n')
      await deliver(box.smtp, { from: 'hello@shop.test', to, raw })
    }
  }
  expect(said).toMatch(/^sign up with \S+\nthe code is 493817\n$/)
})
