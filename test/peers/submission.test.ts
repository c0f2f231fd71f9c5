import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createTransport } from 'nodemailer'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { message } from '../support/appliance.ts'
import { peer } from '../support/peer.ts'
import { type Finished, run } from '../support/program.ts'
import { type Door, newKey, type Office, openOffice, outbound, sourceOf } from '../support/submission.ts'

const user = 'ada@pillarbox.test'
const doors: Door[] = ['starttls', 'tls']

let here: Office
let close: () => Promise<void>
let key = ''
/** The certificate that the box made for itself; all clients here check it. */
let trusted = ''
beforeAll(async () => {
  ;({ here, close } = await openOffice({ PILLARBOX_SUBMISSION__MAX_FAILED_LOGINS: '1000' }))
  key = (await newKey(here.box, { identity_id: here.ada })).key
  trusted = join(here.box.directory, 'data', 'tls', 'cert.pem')
})
afterAll(() => close())

/** The newest message of Ada's, and its source. */
async function newest(): Promise<{ row: Record<string, unknown>; source: string }> {
  const [row] = await outbound(here)
  return { row: row!, source: await sourceOf(here, String(row!['id'])) }
}

describe.each(doors)('nodemailer over %s', (door) => {
  function transport(options: { user?: string; pass?: string; method?: string } = {}) {
    return createTransport({
      host: 'localhost',
      port: here.port(door),
      secure: door === 'tls',
      requireTLS: true,
      tls: { ca: readFileSync(trusted, 'utf8') },
      authMethod: options.method ?? 'PLAIN',
      auth: { user: options.user ?? user, pass: options.pass ?? key },
    })
  }

  test.each(['PLAIN', 'LOGIN'])('sends with AUTH %s: attachment, hidden copy, names in UTF-8', async (method) => {
    const info = await transport({ method }).sendMail({
      from: { name: 'Ädä', address: user },
      to: '"Bob, B." <bob@elsewhere.test>',
      bcc: 'hidden@elsewhere.test',
      subject: 'Grüße',
      text: 'See the file.',
      attachments: [{ filename: 'data.bin', content: Buffer.alloc(3000, 7) }],
    })
    expect(info.accepted).toEqual(['bob@elsewhere.test', 'hidden@elsewhere.test'])
    const { row, source } = await newest()
    expect(info.response).toBe(`250 2.0.0 Ok: queued as ${String(row['id'])}`)
    expect(row).toMatchObject({
      subject: 'Grüße',
      from: user,
      from_name: 'Ädä',
      has_attachments: true,
      message_id: info.messageId,
    })
    expect(source).not.toMatch(/hidden/)
  })

  test('is told what it may not', async () => {
    const mail = { from: user, to: 'bob@elsewhere.test', text: 'x' }
    await expect(transport({ pass: 'wrong' }).sendMail(mail)).rejects.toMatchObject({ code: 'EAUTH', responseCode: 535 })
    await expect(transport().sendMail({ ...mail, from: 'eve@pillarbox.test' })).rejects.toMatchObject({
      code: 'EENVELOPE',
      response: expect.stringMatching(/^553 5\.7\.1 /),
    })
    const forged = { ...mail, from: 'eve@pillarbox.test', envelope: { from: user, to: mail.to } }
    await expect(transport().sendMail(forged)).rejects.toMatchObject({ response: expect.stringMatching(/^553 5\.7\.1 /) })
    const partly = await transport().sendMail({ ...mail, to: ['bob@elsewhere.test', 'bob@nowhere'] })
    expect(partly).toMatchObject({ accepted: ['bob@elsewhere.test'], rejected: ['bob@nowhere'] })
  })

  test('keeps a connection for many', async () => {
    const pool = createTransport({
      pool: true,
      maxConnections: 2,
      host: 'localhost',
      port: here.port(door),
      secure: door === 'tls',
      tls: { ca: readFileSync(trusted, 'utf8') },
      auth: { user, pass: key },
    })
    const before = (await outbound(here)).length
    await Promise.all(
      Array.from({ length: 20 }, (_, count) => pool.sendMail({ from: user, to: 'bob@elsewhere.test', text: `${count}` })),
    )
    pool.close()
    expect((await outbound(here)).length).toBe(before + 20)
  })
})

const swaks = peer('swaks')

describe.runIf(swaks !== undefined).each(doors)('swaks over %s', (door) => {
  function send(...options: string[]): Promise<Finished> {
    const server = ['--server', 'localhost', '--port', `${here.port(door)}`, '--helo', 'swaks.peer.test', '--timeout', '30s']
    const tls = [door === 'tls' ? '--tls-on-connect' : '--tls', '--tls-verify', '--tls-ca-path', trusted]
    return run(swaks!, [...server, ...tls, '--from', user, '--to', 'bob@elsewhere.test', ...options], {
      env: { HOME: here.box.directory },
    })
  }

  test.each(['PLAIN', 'LOGIN'])('sends with AUTH %s, pipelined and not', async (method) => {
    const credentials = ['--auth', method, '--auth-user', user, '--auth-password', key]
    for (const pipelined of [[], ['--pipeline']]) {
      const sent = await send(...credentials, ...pipelined, '--header', 'Subject: From swaks', '--body', '.\n..\nend')
      expect(sent).toMatchObject({ code: 0 })
      const { row, source } = await newest()
      expect(sent.output.toString()).toContain(`queued as ${String(row['id'])}`)
      expect(row).toMatchObject({ subject: 'From swaks', from: user })
      expect(source).toContain('\r\n\r\n.\r\n..\r\nend\r\n')
    }
  })

  test('is refused a wrong key, another sender, and everything without a login', async () => {
    const before = (await outbound(here)).length
    const wrong = await send('--auth', 'PLAIN', '--auth-user', user, '--auth-password', 'wrong')
    expect(wrong.code).toBe(loginRefused)
    expect(wrong.output.toString()).toMatch(/<~\* +535 5\.7\.8 /)
    const other = await send('--auth', 'PLAIN', '--auth-user', user, '--auth-password', key, '--from', 'eve@pillarbox.test')
    expect(other.code).toBe(senderRefused)
    expect((await send()).code).toBe(senderRefused)
    expect((await outbound(here)).length).toBe(before)
  })
})

test.runIf(swaks !== undefined)('swaks finds no login in the clear', async () => {
  const server = ['--server', '127.0.0.1', '--port', `${here.port()}`, '--from', user, '--to', 'bob@elsewhere.test']
  const sent = await run(swaks!, [...server, '--auth', '--auth-user', user, '--auth-password', key], {
    env: { HOME: here.box.directory },
  })
  expect(sent.code).toBe(noLogin)
  expect(sent.output.toString()).not.toMatch(/-> AUTH/)
})

/** Exit codes of swaks: the sender was refused; AUTH is not possible; AUTH failed. */
const senderRefused = 23
const noLogin = 28
const loginRefused = 28

const msmtp = peer('msmtp')

describe.runIf(msmtp !== undefined).each(doors)('msmtp over %s', (door) => {
  const written = message(
    { From: `Ada <${user}>`, To: 'bob@elsewhere.test', Bcc: 'hidden@elsewhere.test', Subject: 'From msmtp' },
    '.dot\nGrüße\n',
  )

  function send(input: string, options: string[], change: Record<string, string> = {}): Promise<Finished> {
    const settings = {
      host: 'localhost',
      port: `${here.port(door)}`,
      tls: 'on',
      tls_starttls: door === 'tls' ? 'off' : 'on',
      tls_trust_file: trusted,
      auth: 'plain',
      user,
      password: key,
      from: user,
      ...change,
    }
    const file = join(here.box.directory, 'msmtprc')
    writeFileSync(
      file,
      `account default\n${Object.entries(settings)
        .map(([name, value]) => `${name} ${value}\n`)
        .join('')}`,
    )
    chmodSync(file, 0o600)
    return run(msmtp!, ['-C', file, ...options], { input, env: { HOME: here.box.directory } })
  }

  test('sends what sendmail would, with its recipients read from the header', async () => {
    for (const auth of ['plain', 'login', 'on']) {
      expect(await send(written.replaceAll('\r\n', '\n'), ['-t'], { auth })).toMatchObject({ code: 0, errors: '' })
      const { row, source } = await newest()
      expect(row).toMatchObject({ subject: 'From msmtp', from: user, from_name: 'Ada' })
      expect(source).toContain('\r\n\r\n.dot\r\nGrüße\r\n')
      expect(source).not.toMatch(/hidden/)
      const { body } = await here.box.call('GET', `/v1/identities/${here.ada}/emails/${String(row['id'])}`)
      expect(body.recipients).toMatchObject({
        to: [{ address: 'bob@elsewhere.test' }],
        bcc: [{ address: 'hidden@elsewhere.test' }],
      })
    }
  })

  test('says what it was told', async () => {
    const wrong = await send(written, ['bob@elsewhere.test'], { password: 'wrong' })
    expect(wrong).toMatchObject({ code: 77, errors: expect.stringContaining('535 5.7.8') })
    const other = await send(written, ['bob@elsewhere.test'], { from: 'eve@pillarbox.test' })
    expect(other).toMatchObject({ code: 65, errors: expect.stringContaining('553 5.7.1') })
    const forged = await send(written.replace(user, 'eve@pillarbox.test'), ['bob@elsewhere.test'])
    expect(forged.code).not.toBe(0)
    expect(forged.errors).toContain('553 5.7.1')
  })
})
