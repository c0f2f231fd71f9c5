import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pick, randomFrom } from '../../support/random.ts'
import { type RunningBox, World } from '../box/world.ts'
import { atOnce } from '../box/at-once.ts'
import { clients, missingClient } from '../peers/clients.ts'
import { messageOf } from '../peers/message.ts'
import { faultOfSending, Outside } from '../peers/outgoing.ts'
import { missingServer, servers } from '../peers/servers.ts'
import { type Cases, caseSeed, type CaseResult, type Setting, type Trial } from '../trial.ts'
import { difference, withoutTrace } from './mail.ts'

/** Messages that a box is sent in one case; it sends one to each server. */
const messagesOfCase = 10

export const peers: Trial = {
  name: 'peers',
  about:
    `Messages with dots, octets above 127, control characters, long and empty lines, attachments, without a body and of 10 MB are sent to a box by ` +
    `${clients.map(({ name }) => name).join(', ')}. Each is accepted, and the box returns it byte for byte. Messages with texts, HTML, attachments and long ` +
    `fields are sent by the API to ${servers.map(({ name }) => name).join(', ')}, found by their MX. Each is delivered over TLS with the certificate ` +
    `checked (but to OpenSMTPD, in the clear), kept byte for byte as the box has it, and its DKIM signatures verify by dkimpy.`,
  goal: { tries: 20_000, unit: 'deliveries', faults: '0 refused, 0 kept differently from sent' },
  short: 15,
  broken: {
    'kept-dots': {
      what: 'a stuffed dot is kept before another dot',
      file: 'src/smtp/unstuffing.ts',
      find: "if (position === 'start' && octet === dot) {",
      replace: "if (position === 'start' && octet === dot && chunk[at + 1] !== dot) {",
    },
    'seven-bits': {
      what: 'octets after a stuffed dot lose their highest bit',
      file: 'src/smtp/unstuffing.ts',
      find: 'content[length++] = octet',
      replace: 'content[length++] = octet & 0x7f',
    },
    'lost-octets': {
      what: 'of every 64 KiB that are sent the last octet is missing',
      file: 'src/outbound/transport/session.ts',
      find: 'yield octets.subarray(at, at + sliceSize)',
      replace: 'yield octets.subarray(at, at + sliceSize - 1)',
    },
    'in-the-clear': {
      what: 'TLS is not used though it is offered',
      file: 'src/outbound/transport/session.ts',
      find: "ignoreTLS: level === 'clear' && !implicit,",
      replace: 'ignoreTLS: !implicit,',
    },
    unrelaxed: {
      what: 'blanks in signed fields are signed as they are',
      file: 'src/outbound/compose/signing.ts',
      find: "    .replaceAll(/[ \\t]+/g, ' ')\n",
      replace: '',
    },
  },
  missing: () => missingClient() ?? missingServer(),
  async open({ directory, program, seed }: Setting): Promise<Cases> {
    const world = await World.open(directory, program, randomFrom(seed))
    const outside = await Outside.start(world)
    const box = await world.start(world.home('box'), outside.env)
    return {
      run: async (number) => {
        const [taken, sent] = [
          await deliverAll(number, { world, box, directory, seed }),
          await sendAll(number, { world, box, outside, seed }),
        ]
        return { tries: taken.tries + sent.tries, faults: [...taken.faults, ...sent.faults] }
      },
      async close() {
        await box.process.end('SIGKILL')
        await outside.stop()
        await world.close()
      },
    }
  },
}

interface Deps {
  world: World
  box: RunningBox
  directory: string
  seed: number
}

async function deliverAll(number: number, { world, box, directory, seed }: Deps): Promise<CaseResult> {
  const random = randomFrom(caseSeed(seed, number))
  const { inbox } = world.furnished
  const faults: string[] = []
  for (let index = 0; index < messagesOfCase; index++) {
    const client = pick(clients, random)
    const text = messageOf(`${seed}-${number}-${index}`, random)
    const fault = await client.send({ ...box.smtp, from: 'a@client.test', to: inbox.email, text, directory }).then(
      () =>
        faultOf((client.keepsBody ? text.slice(text.indexOf('\r\n\r\n')) : text) + (client.adds?.(text) ?? ''), inbox.id, box),
      (error: unknown) => `it was not accepted: ${(error as Error).message.slice(0, 500)}`,
    )
    if (fault === undefined) continue
    const file = join(tmpdir(), `torture-peers-${seed}-${number}-${index}.eml`)
    writeFileSync(file, text, 'latin1')
    faults.push(`message ${index} by ${client.name}: ${fault}; in ${file}`)
  }
  return { tries: messagesOfCase, faults }
}

/** Sends a message to each of the servers, all at once. */
async function sendAll(
  number: number,
  { world, box, outside, seed }: { world: World; box: RunningBox; outside: Outside; seed: number },
): Promise<CaseResult> {
  const sendings = outside.servers.map((server, index) => async () => {
    const random = randomFrom(caseSeed(seed + 1 + index, number))
    const fault = await faultOfSending(server, `to-${seed}-${number}-${index}`, { world, box, random })
    return fault === undefined ? [] : [`the message to ${server.name}: ${fault}`]
  })
  const faults = await atOnce(sendings.length, sendings)
  return { tries: sendings.length, faults: faults.flat() }
}

/** What is wrong with the message that came last. */
async function faultOf(sent: string, inbox: string, box: RunningBox): Promise<string | undefined> {
  const found: string[] = []
  for (const spam of [false, true]) {
    const list = await box.get('GET', `/v1/identities/${inbox}/emails?limit=1&duplicates=true&spam=${spam}`)
    for (const { id } of list['data'] as { id: string }[]) {
      const kept = withoutTrace(await box.text(`/v1/identities/${inbox}/emails/${id}/raw`))
      if (kept.endsWith(withoutTrace(sent))) return undefined
      found.push(difference(kept, withoutTrace(sent)))
    }
  }
  return `it is kept with other bytes, or not at all: ${found.join(', or ')}`
}
