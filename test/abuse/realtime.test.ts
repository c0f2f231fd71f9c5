import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { WebSocket } from 'ws'
import { join } from '../support/phoenix.ts'
import { type Attacker, mailWith } from './attacker.ts'
import { type Attack, underAttack } from './harness.ts'

/** What the holder of a key does with live events. */
const attacks: Attack[] = [
  {
    name: 'twenty sockets with the dearest filters, and changes for them to look at',
    scopes: ['messages:read', 'identities:read', 'identities:write'],
    run: async (attacker) => {
      const filter = 'data=match.(?:[ab]{1,60}[ab]{1,60}){2}c'
      const asked = { event: '*', table: 'agent_events', filter }
      const joined = Array.from({ length: 20 }, async () => {
        const socket = await attacker.webSocket('/realtime/v1/websocket', 'apikey')
        socket?.on('message', (text: Buffer) => note(attacker, text.toString()))
        say(socket, ['1', '1', 'realtime:a', 'phx_join', join([asked])])
      })
      await Promise.all(joined)
      await attacker.repeat(2, (number) =>
        attacker.own('PATCH', '', { body: { name: `${number}`, metadata: { a: 'ab'.repeat(450) } } }),
      )
    },
    answers: ['200', '429 rate_limited', 'ok', 'error', 'event', 'closed 1013', 'closed 4429'],
  },
  {
    name: 'filters that take long to compile, one after the other',
    scopes: ['emails:read'],
    run: async (attacker) => {
      await attacker.repeat(4, async (number) => {
        const socket = await attacker.webSocket('/realtime/v1/websocket', 'apikey')
        if (!socket) return sleep(100)
        const filter = `subject=imatch.${number}${'[b-\u{1e942}]'.repeat(325)}`
        say(socket, ['1', '1', 'realtime:a', 'phx_join', join([{ event: '*', table: 'email_messages', filter }])])
        const [answer] = await once(socket, 'message', { signal: AbortSignal.timeout(20_000) })
        note(attacker, String(answer))
        socket.close()
      })
    },
    answers: ['error', '429', 'closed 1005', 'closed 4429'],
  },
  {
    name: 'many frames',
    scopes: ['messages:read'],
    run: (attacker) => flooding(attacker, 200, (socket) => socket.send('{"type":"ping"}')),
    answers: ['closed 4429', 'closed 1006', 'event', 'error', '429'],
  },
  {
    name: 'many pings of the protocol itself',
    scopes: ['messages:read'],
    run: (attacker) => flooding(attacker, 200, (socket) => socket.ping(Buffer.alloc(125))),
    answers: ['closed 4429', 'closed 1006', 'event', 'error', '429'],
  },
  ...(
    [
      ['empty texts without end on sockets without a token', 0x81],
      ['empty binary frames without end on sockets without a token', 0x82],
      ['pings without end on sockets without a token', 0x89],
      ['pongs without end on sockets without a token', 0x8a],
      ['empty parts of a text without end on sockets without a token', 0x01],
      ['reserved frames without end on sockets without a token', 0x83],
    ] as const
  ).map(([name, first]): Attack => ({
    name,
    scopes: [],
    lasts: 3000,
    run: (attacker) => {
      const start =
        'GET /realtime/v1/websocket?apikey=x&vsn=2.0.0 HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
        'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n'
      const block = Buffer.concat(Array.from({ length: 40_000 }, () => Buffer.from([first, 0x80, 0, 0, 0, 0])))
      return attacker.repeat(40, (number) => attacker.flood(`127.0.5.${1 + (number % 2)}`, start, block))
    },
    answers: ['101', '429', 'closed'],
  })),
  {
    name: 'fragments of an octet each',
    scopes: ['messages:read'],
    run: (attacker) => flooding(attacker, 200, (socket) => socket.send('a', { fin: false })),
    answers: ['closed 1008', 'closed 1009', 'closed 1006', 'closed 4429', '429'],
  },
  {
    name: 'frames of a megabyte',
    scopes: ['messages:read'],
    run: (attacker) => flooding(attacker, 1, (socket) => socket.send(Buffer.alloc(1_000_000, '['))),
    answers: ['closed 1009', 'closed 1006', '429'],
  },
  {
    name: 'frames of 16 KB of brackets',
    scopes: ['messages:read'],
    run: (attacker) => flooding(attacker, 20, (socket) => socket.send('['.repeat(16_000))),
    answers: ['closed 4400', 'closed 4429', 'closed 1006', 'event', 'error', '429'],
  },
  {
    name: 'everything again and again, and not read',
    scopes: ['messages:read'],
    prepare: async (attacker) => {
      const body = 'Words that somebody wrote.\r\n'.repeat(6000)
      for (let number = 0; number < 20; number += 1) await attacker.mail(mailWith(`Subject: ${number}`, body))
    },
    run: async (attacker) => {
      const subscribe = { type: 'subscribe', channel: 'email_messages', since: '2001-01-01T00:00:00Z' }
      await Promise.all(
        Array.from({ length: 20 }, async () => {
          const socket = await attacker.webSocket()
          if (!socket) return
          attacker.note('open')
          for (let count = 0; count < 100; count += 1) say(socket, subscribe)
          socket.pause()
        }),
      )
      await attacker.hold()
    },
    answers: ['open', '429', 'closed 1013', 'closed 4429', 'closed 1006'],
  },
  ...(['\u0001', '"'] as const).map((character): Attack => {
    const to: string[] = []
    return {
      name: `a long mail of ${JSON.stringify(character)} to 60 identities, which a socket hears of`,
      scopes: ['identities:write', 'messages:read'],
      wholeAccount: true,
      lasts: 3000,
      prepare: async (attacker) => {
        for (let number = 0; number < 60; number += 1) {
          to.push((await attacker.call('POST', '/v1/identities', { body: {} })).body.email)
        }
      },
      run: async (attacker) => {
        const socket = await attacker.webSocket()
        socket?.on('message', (text: Buffer) => note(attacker, text.toString()))
        say(socket, { type: 'subscribe', channel: 'agent_events' })
        await sleep(200)
        const line = `${character.repeat(900)}\r\n`
        const parts = ['plain', 'html'].map((type) => `--b\r\nContent-Type: text/${type}\r\n\r\n${line.repeat(300)}\r\n`)
        const head = 'Content-Type: multipart/alternative; boundary=b'
        await attacker.repeat(1, () => attacker.mail(mailWith(head, `${parts.join('')}--b--`), undefined, to))
      },
      answers: ['250', '451', '452', 'event', 'closed 1013', 'closed'],
    }
  }),
  ...(
    [
      { keys: 110, reads: false },
      { keys: 30, reads: true },
    ] as const
  ).map(({ keys, reads }): Attack => {
    const sockets: WebSocket[] = []
    return {
      name: `long mails to ${20 * keys} sockets whose clients ${reads ? '' : 'do not '}read`,
      scopes: ['emails:read', 'account:write'],
      wholeAccount: true,
      lasts: 4000,
      prepare: async (attacker) => {
        for (let number = 0; number < keys; number += 1) {
          const { key } = (await attacker.call('POST', '/v1/api-keys', { body: {}, quiet: true })).body
          const opened = Array.from({ length: 20 }, () => listening(attacker, key, `127.0.1.${number}`))
          sockets.push(...(await Promise.all(opened)))
        }
        for (const socket of sockets) {
          if (!reads) socket.pause()
          socket.on('message', () => attacker.note('event'))
        }
      },
      run: async (attacker) => {
        const line = `${'漢'.repeat(300)}\r\n`
        const parts = ['plain', 'html'].map(
          (type) => `--b\r\nContent-Type: text/${type}; charset=utf-8\r\n\r\n${line.repeat(280)}\r\n`,
        )
        const head = 'Content-Type: multipart/alternative; boundary=b'
        await attacker.repeat(1, async () => {
          await attacker.mail(mailWith(head, `${parts.join('')}--b--`))
          await sleep(1000)
        })
      },
      answers: ['250', 'event'],
    }
  }),
  {
    name: 'more sockets than a key may have',
    scopes: ['messages:read'],
    run: (attacker) =>
      attacker.repeat(20, async () => {
        if (await attacker.webSocket()) attacker.note('open')
      }),
    answers: ['open', '429'],
  },
]

underAttack(attacks)

/** Twenty sockets, and on each these frames, so many together, as fast as they go out; one that was closed is opened again. */
async function flooding(attacker: Attacker, together: number, flood: (socket: WebSocket) => void): Promise<void> {
  await attacker.repeat(20, async () => {
    const socket = await attacker.webSocket()
    if (!socket) return sleep(100)
    socket.on('message', (text: Buffer) => note(attacker, text.toString()))
    while (socket.readyState === socket.OPEN && !attacker.signal.aborted) {
      for (let count = 0; count < together; count += 1) flood(socket)
      await sleep(5)
    }
  })
}

/** A socket that has joined for e-mail. */
async function listening(attacker: Attacker, key: string, from: string): Promise<WebSocket> {
  const socket = (await attacker.webSocket('/realtime/v1/websocket', 'apikey', from, key))!
  say(socket, ['1', '1', 'realtime:a', 'phx_join', join([{ event: '*', table: 'email_messages' }])])
  await once(socket, 'message', { signal: AbortSignal.timeout(20_000) })
  return socket
}

function say(socket: WebSocket | undefined, frame: unknown): void {
  socket?.send(JSON.stringify(frame))
}

/** What a frame from the box is: the answer to a join, an error, or anything else. */
function note(attacker: Attacker, text: string): void {
  if (text.includes('"phx_reply"')) attacker.note(text.includes('"status":"ok"') ? 'ok' : 'error')
  else attacker.note(text.includes('"type":"error"') ? 'error' : 'event')
}
