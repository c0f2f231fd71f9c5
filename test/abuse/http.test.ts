import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { address, type Attacker } from './attacker.ts'
import { type Attack, underAttack } from './harness.ts'

const mebibyte = 1024 * 1024
const host = 'Host: localhost\r\n'

/** What a stranger without a key does to the API's port. */
const attacks: Attack[] = [
  {
    // that one address has few of them is shown elsewhere: those of this machine are not counted (http.max_connections_per_address)
    name: 'connections that come and go',
    scopes: [],
    run: async (attacker) => {
      await attacker.repeat(50, async () => (await attacker.raw('127.0.0.2')).destroy())
      attacker.note('closed')
    },
    answers: ['closed'],
  },
  {
    name: 'eight hundred silent connections',
    scopes: [],
    run: async (attacker) => {
      await Promise.all(Array.from({ length: 800 }, (_, number) => attacker.raw(address(number % 10))))
      attacker.note('closed')
      await attacker.hold()
    },
    answers: ['closed'],
  },
  {
    name: 'five hundred that send a field now and then',
    scopes: [],
    run: (attacker) => dripping(attacker, `GET /v1/identities HTTP/1.1\r\n${host}`, 'X-A: b\r\n'),
    answers: ['closed', '400', '401'],
  },
  {
    name: 'five hundred that send an octet of their body now and then',
    scopes: [],
    run: (attacker) =>
      dripping(
        attacker,
        `POST /v1/session HTTP/1.1\r\n${host}Origin: ${attacker.target.url}\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n`,
        ' ',
      ),
    // 400: that has not come whole in time
    answers: ['closed', '400', '429'],
  },
  {
    name: 'headers of a megabyte',
    scopes: [],
    run: (attacker) => sent(attacker, `GET /v1/identities HTTP/1.1\r\n${host}X-A: ${'a'.repeat(mebibyte)}\r\n\r\n`),
    answers: ['400', 'closed'],
  },
  {
    name: '100,000 header fields',
    scopes: [],
    run: (attacker) => sent(attacker, `GET /v1/identities HTTP/1.1\r\n${host}${'a: b\r\n'.repeat(100_000)}\r\n`),
    answers: ['400', 'closed'],
  },
  {
    name: 'cookies of spaces, thirty calls in one packet',
    scopes: [],
    run: (attacker) => sent(attacker, `GET /v1/nothing HTTP/1.1\r\n${host}Cookie: a${' '.repeat(15_000)}b\r\n\r\n`.repeat(30)),
    answers: ['401', '404', '429', 'closed'],
  },
  {
    name: '20,000 requests in one packet, whose answers are not read',
    scopes: [],
    run: (attacker) =>
      attacker.repeat(2, async (number) => {
        const socket = await attacker.raw(address(number % 8), `GET /healthz HTTP/1.1\r\n${host}\r\n`.repeat(20_000))
        socket.pause()
        await sleep(100)
        socket.destroy()
      }),
    answers: ['200', 'closed'],
  },
  {
    name: 'a body in 200,000 chunks',
    scopes: [],
    run: (attacker) =>
      sent(
        attacker,
        `POST /v1/session HTTP/1.1\r\n${host}Origin: ${attacker.target.url}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${'1;x=y\r\n \r\n'.repeat(200_000)}0\r\n\r\n`,
      ),
    answers: ['400', '429', 'closed'],
  },
  ...(
    [
      ['requests without end on twenty connections', 20],
      ['requests without end on a hundred connections', 100],
    ] as const
  ).map(([name, connections]): Attack => ({
    name,
    scopes: [],
    lasts: 3000,
    run: (attacker) => {
      const block = Buffer.from(`GET /healthz HTTP/1.1\r\n${host}\r\n`.repeat(4000))
      return attacker.repeat(connections, (number) => attacker.flood(address(number % 4), '', block))
    },
    answers: ['200', 'closed'],
  })),
  {
    name: 'a request on each of nine hundred connections at one moment, again and again',
    scopes: [],
    lasts: 4000,
    run: async (attacker) => {
      const sockets = await Promise.all(Array.from({ length: 900 }, (_, number) => attacker.raw(address(number % 9))))
      await attacker.repeat(1, async () => {
        for (const socket of sockets) if (socket.writable) socket.write(`GET /v1/identities HTTP/1.1\r\n${host}\r\n`)
        await sleep(300)
      })
    },
    answers: ['401', '429', 'closed'],
  },
  {
    name: 'nine hundred connections with a request that are closed and opened again',
    scopes: [],
    lasts: 4000,
    run: (attacker) =>
      attacker.repeat(900, async (number) => {
        const socket = await attacker.raw(address(number % 9), `GET /v1/identities HTTP/1.1\r\n${host}\r\n`)
        await Promise.race([once(socket, 'data').catch(() => undefined), sleep(1000)])
        socket.destroy()
      }),
    answers: ['401', '429', 'closed'],
  },
  ...['GET /healthz', 'GET /mcp', 'GET /docs', 'POST /v1/nothing'].map((line): Attack => ({
    name: `chunks of an octet without end to ${line}, which reads none`,
    scopes: [],
    lasts: 3000,
    run: (attacker) => {
      const start = `${line} HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n`
      const block = Buffer.from('1\r\na\r\n'.repeat(40_000))
      return attacker.repeat(50, (number) => attacker.flood(address(number % 4), start, block))
    },
    answers: ['200', '301', '400', '401', '404', '405', '429', 'closed'],
  })),
  {
    name: 'calls without a key, from many addresses',
    scopes: [],
    run: (attacker) =>
      attacker.repeat(32, (number) =>
        attacker.call('GET', `/v1/identities/${number}`, { key: null, from: address(number % 200) }),
      ),
    answers: ['401 missing_key', '429 rate_limited'],
  },
  {
    name: 'keys that there are not, from many addresses',
    scopes: [],
    run: (attacker) =>
      attacker.repeat(32, (number) =>
        attacker.call('GET', '/v1/identities', { key: `k${number}`.repeat(500), from: address(number % 200) }),
      ),
    answers: ['401 invalid_key', '429 rate_limited'],
  },
  {
    name: 'passwords, from two hundred addresses',
    scopes: [],
    run: (attacker) =>
      attacker.repeat(32, (number) =>
        attacker.call('POST', '/v1/session', {
          body: { email: 'mallory@attacker.test', password: `guess number ${number}` },
          headers: { Origin: attacker.target.url },
          key: null,
          from: address(number % 200),
        }),
      ),
    answers: ['401 invalid_credentials', '429 rate_limited', '429 too_many_attempts'],
  },
  {
    name: 'signed URLs that are forged',
    scopes: [],
    run: (attacker) =>
      attacker.repeat(16, (number) => {
        const path = `/v1/exports/job_${'0'.repeat(26)}/${number}?expires=9999999999&signature=${'A'.repeat(43)}`
        return attacker.call('GET', path, { key: null, from: address(number % 200) })
      }),
    // the number of a file has four digits
    answers: ['404 bad_id', '403 invalid_signature', '403 bad_signature', '404 not_found', '429 rate_limited'],
  },
  {
    name: 'the large public documents, whose octets are not read',
    scopes: [],
    run: (attacker) =>
      attacker.repeat(32, async (number) => {
        const socket = await attacker.raw(address(number % 50), `GET /v1/openapi.json HTTP/1.1\r\n${host}\r\n`.repeat(50))
        socket.pause()
        await sleep(200)
        socket.destroy()
      }),
    answers: ['200', '404', '429', 'closed'],
  },
  {
    name: 'upgrades to WebSocket without a token',
    scopes: [],
    run: (attacker) => {
      const upgrade = `Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n`
      return attacker.repeat(32, (number) =>
        attacker
          .raw(address(number % 50), `GET /v1/realtime HTTP/1.1\r\n${host}${upgrade}\r\n`)
          .then((socket) => sleep(20).then(() => socket.destroy())),
      )
    },
    answers: ['101', '400', '401', '429', 'closed'],
  },
]

underAttack(attacks)

/** Five hundred connections that begin a request and go on with it, a piece at a time. */
async function dripping(attacker: Attacker, start: string, piece: string): Promise<void> {
  const sockets = await Promise.all(Array.from({ length: 500 }, (_, number) => attacker.raw(address(number % 10), start)))
  attacker.note('closed')
  await attacker.repeat(1, async () => {
    for (const socket of sockets) if (socket.writable) socket.write(piece)
    await sleep(100)
  })
}

/** These octets on one connection after the other, until each is closed. */
async function sent(attacker: Attacker, octets: string): Promise<void> {
  await attacker.repeat(4, async (number) => {
    const socket = await attacker.raw(address(number % 20), octets)
    const closed = new Promise((resolve) => socket.once('close', resolve))
    await Promise.race([closed, attacker.hold()])
    socket.destroy()
  })
}
