import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, onTestFinished } from 'vitest'
import { authority } from '../support/authority.ts'
import { costlyFlight } from '../support/costly-certificates.ts'
import { IssuerHost } from '../support/issuer-host.ts'
import { newKey } from '../support/tokens.ts'
import type { Attacker } from './attacker.ts'
import { type Attack, underAttack } from './harness.ts'

const directory = mkdtempSync(join(tmpdir(), 'pillarbox-abuse-'))
afterAll(() => rmSync(directory, { recursive: true }))
const trusted = await authority(directory)

/** What servers of the attacker say, which the box asks at the attacker's wish. */
const attacks: Attack[] = [
  {
    name: 'e-mails to ten domains with four hundred MX and a policy of a thousand patterns each',
    scopes: ['emails:write'],
    lasts: 6000,
    prepare: async (attacker) => {
      await verify(attacker)
      const { dns, directory: data } = attacker.target.box
      const patterns = Array.from({ length: 996 }, (_, number) => `*.${number.toString(36)}.c`)
      const policy = JSON.stringify({ mode: 'enforce', mx: patterns, max_age: 86_400 })
      const database = new DatabaseSync(join(data, 'pillarbox.db'), { timeout: 60_000 })
      const insert = database.prepare('INSERT INTO mta_sts_policies (domain, policy_id, policy, expires_at) VALUES (?, ?, ?, ?)')
      for (let number = 0; number < 10; number++) {
        const domain = `big${number}.test`
        insert.run(domain, 'one', policy, new Date(Date.now() + 86_400_000).toISOString())
        dns.txt(`_mta-sts.${domain}`, 'v=STSv1; id=one;')
        dns.mx(domain, ...Array.from({ length: 400 }, (_, index) => `10 q.${index.toString(36)}.b`))
      }
      database.close()
    },
    run: async (attacker) => {
      const to = Array.from({ length: 10 }, (_, number) => `bob@big${number}.test`)
      await attacker.own('POST', '/emails', { body: { to, subject: 'Many', body_text: 'Words.' } })
      await attacker.hold()
    },
    answers: ['201'],
  },
  {
    name: 'tokens of issuers whose certificates have elliptic curves of their own',
    scopes: ['identities:read'],
    wholeAccount: true,
    lasts: 10_000,
    run: async (attacker) => {
      const server = createServer((socket) => {
        socket.on('error', () => undefined)
        socket.once('data', () => socket.write(costlyFlight(32)))
      }).listen(0, '127.0.0.1')
      onTestFinished(() => void server.close())
      await once(server, 'listening')
      const key = newKey()
      const host = await IssuerHost.start(trusted)
      await attacker.repeat(4, async (number) => {
        const did = `did:web:127.0.0.1%3A${(server.address() as AddressInfo).port}:n${number}`
        const token = host.token(key, did, { aud: attacker.target.url })
        await attacker.call('POST', '/v1/verify/token', { body: { token, audience: attacker.target.url } })
      })
    },
    answers: ['200', '429 rate_limited', '429 too_many_waiting'],
  },
  {
    name: 'tokens of ever more issuers with DID documents of ten thousand tokens',
    scopes: ['identities:read'],
    wholeAccount: true,
    lasts: 10_000,
    run: async (attacker) => {
      const host = await IssuerHost.start(trusted)
      const key = newKey()
      await attacker.repeat(6, async (number) => {
        const did = host.did(`n${number}`)
        const many = Array.from({ length: 3200 }, (_, index) => `{"${number}-${index.toString(36)}":0}`).join(',')
        const body = `{"id":"${did}","x":[${many}]}`
        host.pages.set(`/n${number}/did.json`, { body, headers: { 'cache-control': 'max-age=300' } })
        const token = host.token(key, did, { aud: attacker.target.url })
        await attacker.call('POST', '/v1/verify/token', { body: { token, audience: attacker.target.url } })
        host.pages.clear()
      })
    },
    answers: ['200', '429 rate_limited', '429 too_many_waiting'],
  },
]

underAttack(attacks, {
  PILLARBOX_HTTP__RATE_LIMIT: '0',
  PILLARBOX_HTTP__ACCOUNT_RATE_LIMIT: '0',
  PILLARBOX_FETCH__ALLOW_NETWORKS: '127.0.0.0/8',
  PILLARBOX_FETCH__CA_FILE: trusted.caFile,
})

/** The DNS has all records of the domain of the box, so that the box sends mail to others. */
async function verify({ target: { box } }: Attacker): Promise<void> {
  const [domain] = (await box.operator('GET', '/v1/domains')).data
  const values = Map.groupBy(
    domain.dns_records as { type: string; name: string; value: string }[],
    ({ type, name }) => `${type} ${name}`,
  )
  for (const records of values.values()) {
    const { type, name } = records[0]!
    const texts = records.map(({ value }) => value)
    if (type === 'TXT') box.dns.txt(name, ...texts)
    if (type === 'MX') box.dns.mx(name, ...texts)
  }
  box.dns.a('pillarbox.test', '127.0.0.1')
  const { status } = await box.operator('POST', `/v1/domains/${domain.id}/verify`)
  if (status !== 'verified') throw new Error(`the domain of the box is ${status}`)
}
