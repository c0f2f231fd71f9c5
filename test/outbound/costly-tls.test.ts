import { expect, test } from 'vitest'
import { certificate } from '../../src/certificates/self-signed.ts'
import { costlyFlight } from '../support/costly-certificates.ts'
import { folder } from '../support/folder.ts'
import { MailSink } from '../support/mail-sink.ts'
import { sendingBox } from '../support/outgoing.ts'

// an address that no other test uses, as it is refused for minutes
const host = '127.0.0.28'

test('while a network is refused for its costly certificates, mail to another server in it waits: it is not sent in the clear', async () => {
  const sink = await MailSink.start({ host, tls: await certificate(folder(), 'mx.far.test') })
  let costly = true
  sink.script = (line, { socket, write }) => {
    if (line !== 'STARTTLS' || !costly) return undefined
    socket.removeAllListeners('data').once('data', () => socket.end(costlyFlight(12)))
    write('220 Go on\r\n')
    return null
  }
  const { box, send, until } = await sendingBox(sink.port)
  for (const domain of ['far.test', 'near.test']) box.dns.mx(domain, `mx.${domain}`).a(`mx.${domain}`, host)
  // that server gets it in the clear, as one whose TLS fails
  await until(await send('bob@far.test'), 'delivered')
  costly = false
  const delivery = await until(await send('bob@near.test'), 'deferred')
  expect(delivery).toMatchObject({ enhanced_code: '4.7.5', response: expect.stringContaining('retry in some minutes') })
  expect(sink.messages.map(({ to }) => to)).toEqual([['bob@far.test']])
})
