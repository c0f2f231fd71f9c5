import { mkdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pick, randomFrom } from '../../support/random.ts'
import { atOnce } from '../box/at-once.ts'
import { Inboxes } from '../box/inboxes.ts'
import { faultOfKept } from '../box/kept.ts'
import { type Named, type RunningBox, World } from '../box/world.ts'
import { type Client, clients, missingClient } from '../peers/clients.ts'
import { messageOf } from '../peers/message.ts'
import { faultOfSending, Outside } from '../peers/outgoing.ts'
import { fetchServers, missingServer, servers } from '../peers/servers.ts'
import { type Cases, caseSeed, type CaseResult, type Setting, type Trial } from '../trial.ts'

/** Messages that a box is sent in one case, and those that it sends to each server; as many of both are under way at once. */
const [taken, sentToEach, abreast] = [50, 10, 10]

/** Cases after which there is another box, so that its files stay small. */
const casesOfBox = 20

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
  fetch: fetchServers,
  async open({ directory, program, seed, short }: Setting): Promise<Cases> {
    const world = await World.open(directory, program, randomFrom(seed))
    const outside = await Outside.start(world)
    let started: Started | undefined
    let cases = 0
    return {
      async run(number) {
        if (started === undefined || cases++ % casesOfBox === 0) {
          await started?.box.process.end('SIGKILL')
          const box = await world.start(world.home('box'), outside.env)
          started = { box, inboxes: await Inboxes.open(box, abreast), world, outside, directory, seed }
        }
        const [incoming, outgoing] = short ? [10, 1] : [taken, sentToEach]
        const results = await Promise.all([deliverAll(number, incoming, started), sendAll(number, outgoing, started)])
        world.peers.begin(() => 0)
        return { tries: results[0].tries + results[1].tries, faults: results.flatMap(({ faults }) => faults) }
      },
      async close() {
        await started?.box.process.end('SIGKILL')
        await outside.stop()
        await world.close()
      },
    }
  },
}

/** A box that was started, and what it is tried with. */
interface Started {
  box: RunningBox
  inboxes: Inboxes
  world: World
  outside: Outside
  directory: string
  seed: number
}

/** Sends the box messages by clients, some at once. */
async function deliverAll(number: number, count: number, { inboxes, seed, ...at }: Started): Promise<CaseResult> {
  const deliveries = Array.from(
    { length: count },
    (_, index) => () =>
      inboxes.lend(async (inbox) => {
        const random = randomFrom(caseSeed(caseSeed(seed, number), index))
        const client = pick(clients, random)
        const text = messageOf(`${seed}-${number}-${index}`, random)
        const fault = await faultOfDelivery(client, text, inbox, at)
        if (fault === undefined) return []
        const file = join(tmpdir(), `torture-peers-${seed}-${number}-${index}.eml`)
        writeFileSync(file, text, 'latin1')
        return [`message ${index} by ${client.name}: ${fault}; in ${file}`]
      }),
  )
  const faults = await atOnce(abreast, deliveries)
  return { tries: count, faults: faults.flat() }
}

async function faultOfDelivery(
  client: Client,
  text: string,
  inbox: Named,
  { box, directory: all }: Pick<Started, 'box' | 'directory'>,
): Promise<string | undefined> {
  const directory = join(all, inbox.id)
  mkdirSync(directory, { recursive: true })
  try {
    await client.send({ ...box.smtp, from: 'a@client.test', to: inbox.email, text, directory })
  } catch (error) {
    return `it was not accepted: ${(error as Error).message.slice(0, 500)}`
  }
  const sent = (client.keepsBody ? text.slice(text.indexOf('\r\n\r\n')) : text) + (client.adds?.(text) ?? '')
  return faultOfKept(box, inbox.id, sent)
}

/** Has the box send messages to each of the servers, some at once. */
async function sendAll(number: number, count: number, { box, world, outside, seed }: Started): Promise<CaseResult> {
  const sendings = Array.from({ length: count * outside.servers.length }, (_, index) => async () => {
    const server = outside.servers[index % outside.servers.length]!
    const random = randomFrom(caseSeed(caseSeed(seed + 1, number), index))
    const fault = await faultOfSending(server, `to-${seed}-${number}-${index}`, { world, box, dkimpy: outside.dkimpy, random })
    return fault === undefined ? [] : [`message ${index} to ${server.name}: ${fault}`]
  })
  const faults = await atOnce(abreast, sendings)
  return { tries: sendings.length, faults: faults.flat() }
}
