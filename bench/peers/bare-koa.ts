import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { DatabaseSync } from 'node:sqlite'
import { Router } from '@koa/router'
import Koa from 'koa'

// runs as a process of its own: `node bare-koa.ts database answers.json`; GET answers what the file says by one prepared statement, POST
// does one insert that is on disk before the answer

const [file, answers] = process.argv.slice(2) as [string, string]
const database = new DatabaseSync(file)
database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
  CREATE TABLE answers (path TEXT PRIMARY KEY, body TEXT NOT NULL); CREATE TABLE made (id INTEGER PRIMARY KEY, body TEXT NOT NULL)`)
const fill = database.prepare('INSERT INTO answers VALUES (?, ?)')
for (const [path, body] of Object.entries(JSON.parse(readFileSync(answers, 'utf8')) as Record<string, string>))
  fill.run(path, body)
const select = database.prepare('SELECT body FROM answers WHERE path = ?')
const insert = database.prepare('INSERT INTO made (body) VALUES (?)')
const created = (select.get('created') as { body: string } | undefined)?.body ?? '{}'

const router = new Router()
const answer: Koa.Middleware = (context) => {
  context.type = 'application/json'
  context.body = (select.get(context.url) as { body: string }).body
}
router.get('/v1/identities/:id', answer)
router.get('/v1/identities/:id/emails', answer)
router.post('/v1/identities', (context) => {
  insert.run(created)
  context.status = 201
  context.type = 'application/json'
  context.body = created
})
const koa = new Koa()
koa.use(router.routes())
const server = koa.listen(0, '127.0.0.1', () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`))
