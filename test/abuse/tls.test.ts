import { connect, type Socket } from 'node:net'
import { connect as connectSecurely } from 'node:tls'
import { keyUpdates } from '../support/key-updates.ts'
import type { Dialogue } from '../support/smtp.ts'
import { address, type Attacker, mailWith } from './attacker.ts'
import { type Attack, underAttack } from './harness.ts'

const anyone = { rejectUnauthorized: false }

/** Connections that are prepared for an attack. */
const prepared: { socket: Socket; records: Buffer }[] = []

/** What a stranger does inside of TLS. */
const attacks: Attack[] = [
  {
    name: 'handshakes of TLS, one after the other',
    scopes: [],
    run: (attacker) =>
      attacker.repeat(40, async (number) => {
        const dialogue = await startTls(attacker, address(number % 200))
        await Promise.race([dialogue?.upgrade(), attacker.hold()])
        dialogue?.destroy()
      }),
    answers: ['220', '421', '454', 'closed'],
  },
  {
    name: 'messages in records of one octet',
    scopes: [],
    run: async (attacker) => {
      const octets = mailWith('Subject: Small', 'Words.\r\n'.repeat(20_000))
      await Promise.all(
        Array.from({ length: 40 }, async (_, number) => {
          const dialogue = await startTls(attacker, address(number % 10))
          if (!dialogue) return
          const secure = await dialogue.upgrade()
          await dialogue.say('EHLO attacker.test')
          await dialogue.begin([attacker.target.identity.email])
          for (const octet of octets) {
            if (attacker.signal.aborted || secure.destroyed) return
            if (!secure.write(Buffer.from([octet])))
              await new Promise((resolve) => secure.once('drain', resolve).once('close', resolve))
          }
        }),
      )
    },
    lasts: 4000,
    answers: ['220', '421', '454', 'closed'],
  },
  ...[false, true].map((answered): Attack => ({
    name: `20,000 new keys in one packet, from each of ten${answered ? ', all to be answered' : ''}`,
    scopes: [],
    run: async (attacker) => {
      const all = await Promise.all(Array.from({ length: 10 }, (_, number) => startTls(attacker, address(number))))
      const ready = []
      for (const dialogue of all)
        if (dialogue) ready.push({ socket: dialogue.socket, records: await keyUpdates(dialogue.socket, 20_000, answered) })
      for (const { socket, records } of ready) socket.write(records)
      await attacker.hold()
    },
    lasts: 14_000,
    answers: ['220', '421', '454', 'closed'],
  })),
  {
    name: '1,200 new keys in one packet, from each of two hundred networks',
    scopes: [],
    prepare: async (attacker) => {
      for (let number = 0; number < 200; number += 1) {
        const dialogue = await startTls(attacker, address(number))
        if (dialogue) prepared.push({ socket: dialogue.socket, records: await keyUpdates(dialogue.socket, 1200, true) })
      }
    },
    run: async (attacker) => {
      for (const { socket, records } of prepared.splice(0)) {
        socket.write(records)
        attacker.note('written')
      }
      await attacker.hold()
    },
    lasts: 14_000,
    answers: ['written'],
  },
  {
    name: '950 connections of HTTPS that read nothing of a large document',
    scopes: [],
    run: async (attacker) => {
      const { hostname: host, port } = new URL(attacker.target.tls)
      const all = Array.from({ length: 950 }, async (_, number) => {
        const socket = connectSecurely({
          socket: connect({ host, port: Number(port), localAddress: address(number % 50) }),
          ...anyone,
        })
        socket.on('error', () => undefined).once('close', () => attacker.signal.aborted || attacker.note('closed'))
        attacker.signal.addEventListener('abort', () => socket.destroy())
        await new Promise((resolve) => socket.once('secureConnect', resolve).once('close', resolve))
        socket.pause()
        if (socket.write('GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(20))) attacker.note('written')
      })
      await Promise.all(all)
      await attacker.hold()
    },
    lasts: 8000,
    answers: ['written', 'closed'],
  },
]

underAttack(attacks)

/** A connection on which a handshake may begin; the reply to STARTTLS is noted. */
async function startTls(attacker: Attacker, from: string): Promise<Dialogue | undefined> {
  const dialogue = await attacker.smtp(from).catch(() => undefined)
  await dialogue?.reply()
  await dialogue?.say('EHLO attacker.test')
  const reply = (await dialogue?.say('STARTTLS')) ?? ''
  attacker.noteReply(reply)
  return reply.startsWith('220') ? dialogue : undefined
}
