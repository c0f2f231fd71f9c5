import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { ChallengePort } from '../../src/certificates/challenge-port.ts'
import { Challenges } from '../../src/certificates/challenges.ts'

test('a challenge is answered while strangers of many networks hold all connections', { timeout: 60_000 }, async () => {
  const challenges = new Challenges(() => undefined)
  await challenges.post('token', 'token.thumbprint')
  const door = new ChallengePort(challenges, () => 'http://pillarbox.test')
  const { port } = await door.start({ host: '127.0.0.1', port: 0 })
  onTestFinished(() => door.stop())
  const from = async (address: string): Promise<Socket> => {
    const socket = connect({ port, host: '127.0.0.1', localAddress: address }).on('error', () => undefined)
    onTestFinished(() => void socket.destroy())
    await Promise.race([once(socket, 'connect'), once(socket, 'close')])
    return socket
  }
  for (let network = 0; network < 60; network += 1) {
    const strangers = await Promise.all(Array.from({ length: 20 }, () => from(`127.0.3.${network}`)))
    for (const stranger of strangers) stranger.write('GET /.well-known/acme-challenge/')
  }
  for (let network = 0; network < 5; network += 1) {
    const ca = await from(`127.0.4.${network}`)
    ca.write('GET /.well-known/acme-challenge/token HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
    expect(await text(ca)).toMatch(/^HTTP\/1\.1 200 [^]*token\.thumbprint$/)
  }
})
