import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Config, ConfigError, changed, loadConfig } from '../../src/config.ts'
import { sections, settingsOf } from '../../src/config/settings.ts'
import { certificate } from '../../src/certificates/self-signed.ts'

let cwd: string
beforeEach(async () => {
  cwd = await mkdtemp(join(tmpdir(), 'pillarbox-config-'))
})
afterEach(() => rm(cwd, { recursive: true, force: true }))

const key = 'first-steps-0123456789'

async function load(text: string | Buffer | undefined, env: Record<string, string> = {}) {
  if (text !== undefined) await writeFile(join(cwd, 'pillarbox.yaml'), text)
  return loadConfig({ env, cwd })
}

async function complaint(text: string | undefined, env: Record<string, string> = {}, file?: string): Promise<string[]> {
  if (text !== undefined) await writeFile(join(cwd, 'pillarbox.yaml'), text)
  const error = await loadConfig({ file, env, cwd }).catch((thrown: unknown) => thrown)
  return error instanceof ConfigError ? error.message.split('\n') : [`no ConfigError but ${String(error)}`]
}

describe('defaults', () => {
  test('a box needs no configuration', async () => {
    const config = await load(undefined)
    expect(config).toMatchObject({
      data_dir: join(cwd, 'data'),
      keys_dir: join(cwd, 'data-keys'),
      hostname: 'pillarbox.test',
      public_url: 'http://127.0.0.1:8080',
      http: { listen: { host: '127.0.0.1', port: 8080 }, rate_limit: 600 },
      smtp: { listen: [{ host: '127.0.0.1', port: 2525 }], size: 25 * 2 ** 20, idle_timeout: 60_000 },
      mail: { domain: 'pillarbox.test', dmarc: 'reject', quota: 2 ** 30 },
      dns: { servers: [], timeout: 2000 },
    })
    expect(config.bootstrap_key).toBeUndefined()
    expect(config.http.tls).toBeUndefined()
  })

  test.each([
    ['empty', ''],
    ['only comments', '# nothing yet\n'],
    ['a byte order mark', '\uFEFF'],
    ['sections with nothing in them', 'http:\n  # listen: :80\nsmtp:\n  tls:\nmail:\n  rspamd:\n'],
  ])('a file of %s is the defaults', async (_, text) => {
    expect(await load(text)).toEqual(await loadConfig({ env: {}, cwd: join(cwd) }))
    expect((await load(text)).smtp.tls).toBeUndefined()
  })

  test('text messages stay on the box without a file, and go nowhere until a file says how', async () => {
    expect((await load(undefined)).sms.provider).toBe('loopback')
    expect((await load(undefined, { PILLARBOX_SMS__PROVIDER: 'none' })).sms.provider).toBe('none')
    expect((await load('hostname: mx.example.com')).sms.provider).toBe('none')
    expect(await complaint('sms: { provider: twilio }')).toEqual([
      expect.stringContaining('is required when sms.provider is twilio'),
    ])
    const empty = await complaint(
      'sms: { provider: twilio, twilio: { account_sid: AC00000000000000000000000000000000, auth_token: "" } }',
    )
    expect(empty).toEqual([expect.stringContaining('sms.twilio.auth_token')])
  })

  test('names follow from the mail domain, and the public URL from the listener', async () => {
    expect(await load('mail: { domain: Bücher.Example }')).toMatchObject({ hostname: 'xn--bcher-kva.example' })
    expect(await load('http: { listen: ":8080" }')).toMatchObject({ public_url: 'http://localhost:8080' })
    expect(await load('hostname: box.example.com\nhttp: { listen: "0.0.0.0:80" }')).toMatchObject({
      public_url: 'http://box.example.com',
    })
    expect(await load('http: { listen: "[::1]:9000" }')).toMatchObject({ public_url: 'http://[::1]:9000' })
  })
})

describe('values', () => {
  test('sizes come out in bytes, times in milliseconds', async () => {
    const config = await load(
      'smtp: { size: 1.5 MiB, idle_timeout: 5 min, greeting_delay: 0 }\nmail: { quota: 500MB }\ndns: { timeout: 1500 }',
    )
    expect(config).toMatchObject({
      smtp: { size: 1_572_864, idle_timeout: 300_000, greeting_delay: 0 },
      mail: { quota: 500_000_000 },
      dns: { timeout: 1500 },
    })
  })

  test('a byte order mark and Windows line ends do no harm', async () => {
    expect(await load('\uFEFFhostname: mx.example.com\r\nhttp:\r\n  listen: 127.0.0.1:0\r\n')).toMatchObject({
      hostname: 'mx.example.com',
      http: { listen: { host: '127.0.0.1', port: 0 } },
    })
  })

  test('a bare address is a block of one', async () => {
    expect(await load('http: { trusted_proxies: [10.0.0.1, "fd00::/8"] }')).toMatchObject({
      http: { trusted_proxies: ['10.0.0.1/32', 'fd00::/8'] },
    })
  })
})

describe('the environment', () => {
  test('wins over the file, which wins over the defaults', async () => {
    const config = await load('http: { listen: ":80", rate_limit: 5 }\nlog: { level: warn }', {
      PILLARBOX_HTTP__LISTEN: '127.0.0.1:0',
      PILLARBOX_DATA_DIR: 'elsewhere',
      PILLARBOX_DNS__SERVERS: '127.0.0.1:5353, [::1]:53',
      PILLARBOX_SMTP__LISTEN: '127.0.0.1:25,:587',
      PILLARBOX_SMTP__SIZE: '70000',
      PILLARBOX_MAIL__STRICT_TEMPERROR: 'true',
      PILLARBOX_HTTP__MAX_CONNECTIONS: '7',
    })
    expect(config).toMatchObject({
      data_dir: join(cwd, 'elsewhere'),
      log: { level: 'warn' },
      http: { listen: { host: '127.0.0.1', port: 0 }, rate_limit: 5, max_connections: 7 },
      dns: { servers: ['127.0.0.1:5353', '[::1]:53'] },
      smtp: {
        listen: [
          { host: '127.0.0.1', port: 25 },
          { host: undefined, port: 587 },
        ],
        size: 70_000,
      },
      mail: { strict_temperror: true },
    })
  })

  test('empty variables, other programs and what is no setting are passed over', async () => {
    const env = { PILLARBOX_HOSTNAME: '', PILLARBOX_TEST_SLOW: '1', PILLARBOX_CONFIG: '', HOSTNAME: 'x', PILLARBOX: 'x' }
    expect(await load('hostname: mx.example.com', env)).toMatchObject({ hostname: 'mx.example.com' })
  })

  test('each fault names its variable', async () => {
    const env = {
      PILLARBOX_HTTP__LISTEN: '127.0.0.1:http',
      PILLARBOX_HTTP__RATE_LIMIT: '1e3',
      PILLARBOX_MAIL__STRICT_TEMPERROR: 'yes',
      PILLARBOX_DNS__SERVERS: '127.0.0.1,ns1',
      PILLARBOX_HTTP__TLS__CERT: 'nowhere.pem',
      PILLARBOX_BOOTSTRAP_KEY: 'short',
      PILLARBOX_HTTP__LISTN: 'x',
      PILLARBOX_HTTP_LISTEN: 'x',
      PILLARBOX_HTTP: 'x',
    }
    const said = await complaint(undefined, env)
    expect(said.toSorted()).toEqual([
      'PILLARBOX_BOOTSTRAP_KEY: must be 20 to 128 printable ASCII characters without spaces',
      'PILLARBOX_DNS__SERVERS: must be an address such as 127.0.0.1:5353 or [::1]:53, not "ns1"',
      'PILLARBOX_HTTP: is not a setting',
      'PILLARBOX_HTTP_LISTEN: is not a setting, did you mean PILLARBOX_HTTP__LISTEN?',
      'PILLARBOX_HTTP__LISTEN: must be host:port such as 127.0.0.1:8080, [::1]:8080 or :8080, not "127.0.0.1:http"',
      'PILLARBOX_HTTP__LISTN: is not a setting, did you mean PILLARBOX_HTTP__LISTEN?',
      'PILLARBOX_HTTP__RATE_LIMIT: must be a whole number from 0 to 1000000, not "1e3"',
      `PILLARBOX_HTTP__TLS__CERT: ${cwd}/nowhere.pem does not exist`,
      'PILLARBOX_HTTP__TLS__KEY: is missing, must be the path of a file',
      'PILLARBOX_MAIL__STRICT_TEMPERROR: must be true or false, not "yes"',
    ])
  })

  test('a fault of the file keeps its line when the environment is at fault too', async () => {
    expect(await complaint('http:\n  rate_limit: x\n', { PILLARBOX_LOG__LEVEL: 'loud' })).toEqual([
      'pillarbox.yaml:2:15 http.rate_limit: must be a whole number from 0 to 1000000, not "x"',
      'PILLARBOX_LOG__LEVEL: must be one of trace, debug, info, warn, error, fatal, silent, not "loud"',
    ])
  })
})

describe('which file', () => {
  test('the one asked for, else PILLARBOX_CONFIG, else pillarbox.yaml', async () => {
    await writeFile(join(cwd, 'pillarbox.yaml'), 'hostname: a.example')
    await writeFile(join(cwd, 'b.yaml'), 'hostname: b.example')
    await writeFile(join(cwd, 'c.yaml'), 'hostname: c.example')
    const env = { PILLARBOX_CONFIG: 'b.yaml' }
    expect((await loadConfig({ env: {}, cwd })).hostname).toBe('a.example')
    expect((await loadConfig({ env, cwd })).hostname).toBe('b.example')
    expect((await loadConfig({ file: join(cwd, 'c.yaml'), env, cwd })).hostname).toBe('c.example')
  })

  test('one in the data directory that is named is that of the box, before one of the working directory', async () => {
    await mkdir(join(cwd, 'data'))
    await writeFile(join(cwd, 'data', 'pillarbox.yaml'), 'hostname: inside.test')
    await writeFile(join(cwd, 'pillarbox.yaml'), 'hostname: beside.test')
    expect(await loadConfig({ env: { PILLARBOX_DATA_DIR: 'data' }, cwd })).toMatchObject({ hostname: 'inside.test' })
    expect(await loadConfig({ env: { PILLARBOX_DATA_DIR: 'other' }, cwd })).toMatchObject({ hostname: 'beside.test' })
    expect(await loadConfig({ file: 'pillarbox.yaml', env: { PILLARBOX_DATA_DIR: 'data' }, cwd })).toMatchObject({
      hostname: 'beside.test',
    })
  })

  test('one that was asked for must be there, and be a file of sensible size', async () => {
    await mkdir(join(cwd, 'folder'))
    await writeFile(join(cwd, 'big.yaml'), '#'.repeat(2 ** 20 + 1))
    expect(await complaint(undefined, {}, 'nowhere.yaml')).toEqual(['nowhere.yaml: does not exist'])
    expect(await complaint(undefined, { PILLARBOX_CONFIG: 'nowhere.yaml' })).toEqual(['nowhere.yaml: does not exist'])
    expect(await complaint(undefined, {}, 'folder')).toEqual(['folder: is a directory, must be a file'])
    expect(await complaint(undefined, {}, 'big.yaml')).toEqual([
      'big.yaml: is larger than 1 MiB, the limit for a configuration file',
    ])
  })
})

describe('secrets', () => {
  test('from the file, a file beside it, a credential or a variable; later wins', async () => {
    await writeFile(join(cwd, 'key'), `${key}-file\n`)
    await mkdir(join(cwd, 'credentials'))
    expect((await load(`bootstrap_key: ${key}`)).bootstrap_key).toBe(key)
    expect((await load('bootstrap_key_file: key')).bootstrap_key).toBe(`${key}-file`)
    const env = { CREDENTIALS_DIRECTORY: join(cwd, 'credentials') }
    expect((await load(`bootstrap_key: ${key}`, env)).bootstrap_key).toBe(key)
    await writeFile(join(cwd, 'credentials/pillarbox.bootstrap_key'), `${key}-credential\r\n`)
    expect((await load(`bootstrap_key: ${key}`, env)).bootstrap_key).toBe(`${key}-credential`)
    expect((await load('bootstrap_key_file: nowhere', env)).bootstrap_key).toBe(`${key}-credential`)
    expect((await load(`bootstrap_key: ${key}`, { ...env, PILLARBOX_BOOTSTRAP_KEY_FILE: 'key' })).bootstrap_key).toBe(
      `${key}-file`,
    )
    expect((await load('bootstrap_key_file: key', { ...env, PILLARBOX_BOOTSTRAP_KEY: `${key}-env` })).bootstrap_key).toBe(
      `${key}-env`,
    )
  })

  test('inside sections, and no trace of where they lay', async () => {
    await writeFile(join(cwd, 'token'), key)
    const config = await load('mail: { rspamd: { url: "http://127.0.0.1:11334/", password_file: token } }', {
      PILLARBOX_METRICS__TOKEN_FILE: join(cwd, 'token'),
    })
    expect(config.metrics).toEqual({ token: key })
    expect(config.mail.rspamd).toEqual({ url: 'http://127.0.0.1:11334', password: key, timeout: 5000 })
  })

  test('what is wrong with one never shows it', async () => {
    await writeFile(join(cwd, 'token'), 'too short\n')
    expect(await complaint('metrics:\n  token_file: token\n')).toEqual([
      'pillarbox.yaml:2:15 metrics.token_file: must be 20 to 128 printable ASCII characters without spaces',
    ])
    expect(await complaint('', { PILLARBOX_METRICS__TOKEN_FILE: 'nowhere' })).toEqual([
      `PILLARBOX_METRICS__TOKEN_FILE: ${cwd}/nowhere does not exist`,
    ])
    expect(await complaint('', { PILLARBOX_METRICS__TOKEN_FILE: 'token', PILLARBOX_METRICS__TOKEN: key })).toEqual([
      'PILLARBOX_METRICS__TOKEN_FILE: is set together with PILLARBOX_METRICS__TOKEN, set only one of the two',
    ])
  })
})

describe('certificates', () => {
  test('come out as absolute paths, and HTTPS is what clients are told', async () => {
    await certificate(join(cwd, 'tls'), 'mx.example.com')
    const config = await load('http:\n  tls:\n    cert: tls/cert.pem\n    key: tls/key.pem\n')
    expect(config.http.tls).toEqual({
      cert: join(cwd, 'tls/cert.pem'),
      key: join(cwd, 'tls/key.pem'),
      listen: { host: '127.0.0.1', port: 8443 },
    })
    expect(config.public_url).toBe('https://127.0.0.1:8443')
  })

  test('a key must belong to its certificate', async () => {
    await certificate(join(cwd, 'one'), 'mx.example.com')
    await certificate(join(cwd, 'two'), 'mx.example.com')
    expect(await complaint('smtp:\n  tls: { cert: one/cert.pem, key: two/key.pem }\n')).toEqual([
      'pillarbox.yaml:2:35 smtp.tls.key: must be the private key of the certificate',
    ])
  })
})

describe('what changed', () => {
  test('is told apart by what it needs', async () => {
    const before = await load('log: { level: info }\nhttp: { cors_origins: ["https://a.example"] }')
    const after = await load('log: { level: debug }\nhttp: { listen: ":80" }\nmetrics: { token: 0123456789abcdefghij }')
    expect(changed(before, before)).toEqual({ reloadable: [], restart: [] })
    expect(changed(before, after)).toEqual({
      reloadable: ['log.level', 'http.cors_origins', 'metrics.token'],
      restart: ['public_url', 'http.listen'],
    })
  })

  test('where the box keeps things and listens needs a restart', () => {
    const restartOnly = settingsOf(sections(Config)).flatMap(({ restart, name }) => (restart ? [name] : []))
    expect(restartOnly).toEqual(expect.arrayContaining(['data_dir', 'keys_dir', 'http.listen', 'smtp.listen', 'metrics.listen']))
    expect(restartOnly).not.toContain('log.level')
  })
})
