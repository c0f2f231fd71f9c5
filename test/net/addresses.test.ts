import { describe, expect, test } from 'vitest'
import { Outside, type OutsideDial, type OutsideSettings, Unreachable } from '../../src/net/outside.ts'
import { isPublic } from '../../src/net/public-addresses.ts'

/** What names mean here; nothing is asked of any name server. */
const zone: Record<string, string[]> = {
  'good.example.com': ['93.184.215.14', '2606:2800:21f:cb07:6820:80da:af6b:8b2c'],
  localhost: ['127.0.0.1', '::1'],
  'localhost.': ['127.0.0.1'],
  'app.localhost': ['127.0.0.1'],
  'metadata.google.internal': ['169.254.169.254'],
  'instance-data.ec2.internal': ['169.254.169.254'],
  'loop.example.com': ['127.0.0.1'],
  'mixed.example.com': ['93.184.215.14', '10.0.0.7'],
  'mixed6.example.com': ['93.184.215.14', '::1'],
  'lan.example.com': ['192.168.1.5'],
  '127.0.0.1.nip.io': ['127.0.0.1'],
  'cgnat.example.com': ['100.64.7.7'],
  'mapped.example.com': ['::ffff:169.254.169.254'],
  'zero.example.com': ['0.0.0.0'],
  'ula.example.com': ['fd00:ec2::254'],
}

const hostile = [
  // loopback and its spellings
  'https://127.0.0.1/',
  'https://127.1/',
  'https://127.255.255.254/',
  'https://2130706433/',
  'https://0x7f000001/',
  'https://0x7f.0.0.1/',
  'https://0177.0.0.1/',
  'https://017700000001/',
  'https://0/',
  'https://0.0.0.0/',
  'https://①②⑦.⓪.⓪.①/',
  'https://127。0。0。1/',
  'https://%31%32%37.0.0.1/',
  'https://127.0.0.1./',
  'https://[::1]/',
  'https://[0:0:0:0:0:0:0:1]/',
  'https://[::]/',
  'https://[::ffff:127.0.0.1]/',
  'https://[::ffff:7f00:1]/',
  'https://[::127.0.0.1]/',
  // private, shared, link-local
  'https://10.1.2.3/',
  'https://172.16.0.1/',
  'https://172.31.255.255/',
  'https://192.168.0.1/',
  'https://100.64.0.1/',
  'https://169.254.1.1/',
  'https://[fe80::1]/',
  'https://[fec0::1]/',
  'https://[fc00::1]/',
  'https://[fd12:3456::1]/',
  // metadata
  'https://169.254.169.254/latest/meta-data/',
  'https://2852039166/',
  'https://0xa9fea9fe/',
  'https://[::ffff:169.254.169.254]/',
  'https://[fd00:ec2::254]/',
  'https://100.100.100.200/',
  'https://168.63.129.16/',
  'https://192.0.0.192/',
  'https://metadata.google.internal/',
  'https://instance-data.ec2.internal/',
  // IPv4 inside IPv6
  'https://[64:ff9b::7f00:1]/',
  'https://[64:ff9b::169.254.169.254]/',
  'https://[64:ff9b:1::a00:1]/',
  'https://[2002:7f00:1::]/',
  'https://[2002:a9fe:a9fe::1]/',
  'https://[2001:0:7f00:1::1]/',
  'https://[::ffff:0:127.0.0.1]/',
  // reserved
  'https://192.0.2.1/',
  'https://198.18.0.1/',
  'https://198.51.100.1/',
  'https://203.0.113.1/',
  'https://192.88.99.1/',
  'https://224.0.0.1/',
  'https://240.0.0.1/',
  'https://255.255.255.255/',
  'https://[2001:db8::1]/',
  'https://[ff02::1]/',
  'https://[100::1]/',
  'https://[3fff::1]/',
  // names
  'https://localhost/',
  'https://LOCALHOST/',
  'https://localhost./',
  'https://app.localhost/',
  'https://loop.example.com/',
  'https://127.0.0.1.nip.io/',
  'https://mixed.example.com/',
  'https://mixed6.example.com/',
  'https://lan.example.com/',
  'https://cgnat.example.com/',
  'https://mapped.example.com/',
  'https://zero.example.com/',
  'https://ula.example.com/',
  // credentials, schemes, ports, what is no URL
  'https://user:password@good.example.com/',
  'https://good.example.com@127.0.0.1/',
  'https://user@good.example.com/',
  'http://93.184.215.14/',
  'ftp://good.example.com/',
  'file:///etc/passwd',
  'gopher://good.example.com/',
  'javascript:alert(1)',
  'data:text/plain,x',
  'ws://good.example.com/',
  'https://93.184.215.14:25/',
  'https://93.184.215.14:22/',
  '//good.example.com/',
  '/etc/passwd',
  'https://',
  'https://[::1/',
]

const settings: OutsideSettings = { allow_http: false, allow_networks: [], resolve: resolveIn(zone) }

test(`the table has ${hostile.length} forms, at least 40`, () => {
  expect(new Set(hostile).size).toBe(hostile.length)
  expect(hostile.length).toBeGreaterThanOrEqual(40)
})

describe.each(hostile.map((url) => [url]))('%s', (url) => {
  test('is refused when given, and never dialled', async () => {
    const { outside, dialled } = guarded(settings)
    await expect(outside.check(url)).rejects.toThrow(Unreachable)
    await expect(post(outside, url)).rejects.toThrow(Unreachable)
    expect(dialled).toEqual([])
  })
})

test('a name that means something refused is never connected to, whatever it meant before', async () => {
  for (const host of Object.keys(zone).filter((name) => name !== 'good.example.com')) {
    const outside = new Outside(settings)
    await expect(post(outside, `https://${host}/`)).rejects.toThrow(/is not a public address/)
    await outside.close()
  }
})

test('a name that changes its meaning between the two looks gains nothing', async () => {
  const answers = [['93.184.215.14'], ['127.0.0.1']]
  const outside = new Outside({ ...settings, resolve: async () => answers.shift() ?? ['127.0.0.1'] })
  await outside.check('https://rebind.example.com/')
  await expect(post(outside, 'https://rebind.example.com/')).rejects.toThrow(
    /^the address of rebind\.example\.com is not a public address$/,
  )
  await outside.close()
})

test.each([['127.0.0.1'], ['::ffff:10.0.0.1'], ['fd00::1'], [undefined]])(
  'a connection that ends up at %s all the same is closed before anything is said',
  async (remoteAddress) => {
    const said: unknown[] = []
    let closed = false
    const socket = { remoteAddress, destroy: () => (closed = true), write: (octets: unknown) => said.push(octets) }
    const lying = ((_options, callback) => callback(null, socket as never)) as OutsideDial
    const outside = new Outside(settings, lying)
    await expect(post(outside, 'https://good.example.com/')).rejects.toThrow('is not a public address')
    expect(closed).toBe(true)
    expect(said).toEqual([])
  },
)

test('a name without an address may get one later, unless that is asked, or it would be plain http', async () => {
  const { outside } = guarded(settings)
  await outside.check('https://not-yet.example.com/')
  await expect(outside.check('https://not-yet.example.com/', true)).rejects.toThrow('has no address')
  await expect(outside.check('http://not-yet.example.com/')).rejects.toThrow('has no address')
  await expect(outside.check('http://good.example.com/')).rejects.toThrow('it must be https')
  await outside.check('https://good.example.com:8443/hook')
})

test('allowed networks open themselves and nothing else, for http as well', async () => {
  const { outside } = guarded({ ...settings, allow_networks: ['192.168.1.0/24', 'fd00::/8'] })
  await outside.check('http://192.168.1.5:25/')
  await outside.check('http://lan.example.com/')
  await outside.check('https://[fd00:ec2::254]/')
  await expect(outside.check('http://192.168.2.5/')).rejects.toThrow('is not a public address')
  await expect(outside.check('https://localhost/')).rejects.toThrow('is not a public address')
  await expect(outside.check('https://mixed.example.com/')).rejects.toThrow(
    /^the address of mixed\.example\.com is not a public address$/,
  )
  outside.reload({ ...settings, allow_http: true })
  await expect(outside.check('http://192.168.1.5/')).rejects.toThrow('is not a public address')
  await outside.check('http://good.example.com/')
})

test('public addresses are public', () => {
  for (const address of ['1.1.1.1', '8.8.8.8', '172.32.0.1', '100.63.0.1', '192.0.1.1', '2606:4700::1111', '::ffff:8.8.8.8']) {
    expect([address, isPublic(address)]).toEqual([address, true])
  }
  for (const text of ['', 'example.com', '1', '0x7f.1', '127.1', '1.2.3', '::ffff:127.0.0.1'])
    expect([text, isPublic(text)]).toEqual([text, false])
})

function guarded(given: OutsideSettings): { outside: Outside; dialled: string[] } {
  const dialled: string[] = []
  const dial: OutsideDial = (options, callback) => {
    dialled.push(options.hostname)
    callback(new Unreachable('the test does not dial'), null)
  }
  return { outside: new Outside(given, dial), dialled }
}

function post(outside: Outside, url: string): Promise<unknown> {
  return outside.post(url, { headers: {}, body: Buffer.from('{}'), deadline: 5000, signal: new AbortController().signal })
}

function resolveIn(names: Record<string, string[]>): OutsideSettings['resolve'] {
  return async (host) => {
    const found = names[host]
    if (!found) throw Object.assign(new Error(`ENOTFOUND ${host}`), { code: 'ENOTFOUND' })
    return found
  }
}
