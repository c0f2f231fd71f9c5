import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { App } from '../../../src/app.ts'
import { loadConfig } from '../../../src/config.ts'
import { createLog } from '../../../src/core/log.ts'
import { folder } from '../../support/folder.ts'
import { freePort } from '../../support/free-port.ts'
import { emptyDatabase, serverOfFile } from './server.ts'

const postgres = serverOfFile()

const password = 'correct-horse-battery'

interface Opened {
  app: App
  logged: string[]
  data: string
}

async function open(url: string, data = join(folder(), 'data'), keys = `${data}-keys`): Promise<Opened> {
  const logged: string[] = []
  const env = {
    PILLARBOX_DATA_DIR: data,
    PILLARBOX_KEYS_DIR: keys,
    PILLARBOX_DATABASE__URL: url,
    PILLARBOX_HTTP__LISTEN: '127.0.0.1:0',
    PILLARBOX_SMTP__LISTEN: '127.0.0.1:0',
    PILLARBOX_MIN_FREE: '0',
  }
  const config = await loadConfig({ env, cwd: folder() })
  const log = createLog('trace', { write: (line: string) => void logged.push(line) })
  const app = await App.open(config, log)
  onTestFinished(() => app.stop())
  return { app, logged, data }
}

test('a database that is not there, refuses the password, or is of another kind stops the start with a sentence, and without the password', async () => {
  const at = postgres()
  await emptyDatabase(at, 'latin', "ENCODING 'LATIN1' LOCALE 'C'")
  await emptyDatabase(at, 'strange')
  await at.run('strange', 'CREATE TABLE accounts (id integer)')
  await emptyDatabase(at, 'readonly')
  await at.run('postgres', 'ALTER DATABASE readonly SET default_transaction_read_only = on')
  await emptyDatabase(at, 'poor')
  await at.run('postgres', 'CREATE ROLE nobody LOGIN')
  const url = (name: string, port = at.port, user = 'postgres'): string =>
    `postgres://${user}:${password}@127.0.0.1:${port}/${name}`
  const refused: [string, RegExp][] = [
    [url('none', await freePort()), /^The database none of 127\.0\.0\.1:\d+ cannot be used: connect ECONNREFUSED/],
    [url('none'), /cannot be used: database "none" does not exist \(CREATE DATABASE … ENCODING 'UTF8' LOCALE 'C'/],
    [url('poor', at.port, 'somebody'), /cannot be used: role "somebody" does not exist\.$/],
    [url('latin'), /has the encoding LATIN1; Pillarbox needs UTF8/],
    [url('strange'), /has tables that are not of Pillarbox/],
    [url('readonly'), /is read-only/],
    [url('poor', at.port, 'nobody'), /does not let its user create tables/],
  ]
  for (const [named, sentence] of refused) {
    const error = await open(named).then(
      () => undefined,
      (thrown: Error) => thrown,
    )
    expect(error?.message).toMatch(sentence)
    expect(error).toMatchObject({ obstacle: 'server' })
    expect(`${error!.message}${error!.stack}`).not.toContain(password)
  }
})

test('a server of another locale is refused: texts would be in another order', async () => {
  const at = postgres()
  // of the server's own library, whatever locales the system has
  await emptyDatabase(at, 'locale', "ENCODING 'UTF8' LOCALE 'C' LOCALE_PROVIDER icu ICU_LOCALE 'en-US'")
  await expect(open(at.url('locale'))).rejects.toThrow(/does not compare texts byte by byte/)
})

test('a box keeps its data there, and its data directory says so; no log line has the password', async () => {
  const at = postgres()
  await emptyDatabase(at, 'kept')
  const url = at.url('kept').replace('postgres@', `postgres:${password}@`)
  const { app, data, logged } = await open(url)
  await app.start()
  await app.stop()
  expect(existsSync(join(data, 'pillarbox.db'))).toBe(false)
  expect(logged.join('\n')).not.toContain(password)
  const again = await open(url, data)
  await again.app.stop()
  await at.run('kept', 'UPDATE schema_version SET version = 9999')
  await expect(open(url, data)).rejects.toThrow(/was written by a newer Pillarbox \(version 9999, this one knows \d+\)/)
  await expect(open('', data)).rejects.toThrow(
    /^The data of this box is in the database kept of .*Set database\.url; nothing was changed\.$/,
  )
  await emptyDatabase(at, 'other')
  await expect(open(at.url('other'), data)).rejects.toThrow(/is empty, although this data directory had a database/)
})

test('another data directory does not open the data of a box, nor does another master key', async () => {
  const at = postgres()
  await emptyDatabase(at, 'owned')
  const { app, data } = await open(at.url('owned'))
  await app.stop()
  await expect(open(at.url('owned'))).rejects.toThrow(/has the data of a box, but state\.json, which names its accounts, is new/)
  const keys = join(folder(), 'keys')
  mkdirSync(keys)
  writeFileSync(join(keys, 'master.key'), `${Buffer.alloc(32, 7).toString('base64')}\n`, { mode: 0o600 })
  await expect(open(at.url('owned'), data, keys)).rejects.toThrow(/master/i)
})

test('a data directory with a database of its own is not given another', async () => {
  const data = join(folder(), 'data')
  const { app } = await open('', data)
  await app.stop()
  await expect(open(postgres().url('postgres'), data)).rejects.toThrow(/has a database of its own/)
})

test.each([
  ['mysql://u:secret-word@h/d', /must be a URL such as/],
  ['postgres://u:secret-word@h/', /must name a database/],
  ['postgres://u:secret?word@h/d', /DATABASE__URL: must be a URL such as/],
  ['postgres://u:secret-word@h/d?sslmode=secret-word', /has an unknown sslmode; there are disable, require, verify-full/],
  ['postgres://u:secret-word@h/d?secret-word=1', /has an unknown parameter; there are host, sslmode, sslrootcert/],
  ['postgres:///d', /must name one host/],
])('a URL that is wrong is refused without being repeated: %s', async (url, sentence) => {
  const error = await open(url).then(
    () => undefined,
    (thrown: Error) => thrown,
  )
  expect(error?.message).toMatch(sentence)
  expect(error?.message).not.toContain('secret')
})
