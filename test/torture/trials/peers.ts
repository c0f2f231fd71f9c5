import { mkdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pick, randomFrom } from '../../support/random.ts'
import { atOnce } from '../box/at-once.ts'
import { Inboxes } from '../box/inboxes.ts'
import { faultOfKept } from '../box/kept.ts'
import { type Named, type RunningBox, World } from '../box/world.ts'
import { byPython, type Client, clients, type Delivery, missingClient } from '../peers/clients.ts'
import { messageOf } from '../peers/message.ts'
import { faultOfSending, Outside } from '../peers/outgoing.ts'
import { fetchServers, missingServer, type RunningServer, servers } from '../peers/servers.ts'
import { type Cases, caseSeed, type CaseResult, type Setting, type Trial } from '../trial.ts'

/** Messages that a box is sent in one case, those that each server relays to it, and those that it sends to each; as many of each are under way at once. */
const [taken, relayedByEach, sentToEach, abreast] = [50, 5, 10, 10]

/** Milliseconds for a message that a server has accepted to come. */
const patience = 60_000

/** Cases after which there is another box, so that its files stay small. */
const casesOfBox = 20

export const peers: Trial = {
  name: 'peers',
  about:
    `Messages with dots, octets above 127, control characters, long and empty lines, attachments, without a body and of 10 MB are sent to a box by ` +
    `${clients.map(({ name }) => name).join(', ')}: one half in the clear, the other by STARTTLS with the certificate checked (but by smtp-source, which knows no ` +
    `TLS). ${names(servers.filter((server) => server.relaysNone !== true))} are sent others and relay them to the box, each by its queue, over TLS (but OpenSMTPD, and ` +
    `Haraka does not check the certificate). Each is accepted, comes once, and the box returns it byte for byte, with nothing but fields of trace before it; ` +
    `of git send-email, which writes the header itself, the body is compared. Messages with texts, HTML, attachments and long fields are sent by the API to ` +
    `${names(servers)}, found by their MX. Each is delivered over TLS with the certificate checked (but to OpenSMTPD, in the clear), and its DKIM signatures ` +
    `verify by dkimpy. What ${names(servers.filter(({ crlf }) => crlf))} keep is compared with what the box has byte for byte; the others keep lines with LF ` +
    `alone, and are compared with that. Before it may stand nothing but fields of trace.`,
  goal: { tries: 20_000, unit: 'deliveries', faults: '0 refused, 0 kept differently from sent' },
  short: 15,
  hours: 0.7,
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
    'no-starttls': {
      what: 'STARTTLS is not offered',
      file: 'src/smtp/receiver.ts',
      find: 'hideENHANCEDSTATUSCODES: false,',
      replace: 'hideENHANCEDSTATUSCODES: false, hideSTARTTLS: true,',
    },
    'stored-twice': {
      what: 'a message that a relay has sent is stored twice',
      file: 'src/smtp/transaction.ts',
      find: 'const id = await deliveryTarget.deliver(envelope, raw, note, account)',
      replace: `if (receivedHops(raw) > 0) await deliveryTarget.deliver(envelope, Buffer.from(raw), note, account)
    const id = await deliveryTarget.deliver(envelope, raw, note, account)`,
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
          const inboxes = await Inboxes.open(box, 2 * abreast)
          started = { box, inboxes, sent: new Map(), world, outside, directory, seed }
        }
        const [incoming, relayed, outgoing] = short ? [10, 1, 1] : [taken, relayedByEach, sentToEach]
        const results = await Promise.all([
          deliverAll(number, incoming, started),
          relayAll(number, relayed, started),
          sendAll(number, outgoing, started),
        ])
        world.peers.begin(() => 0)
        const faults = [...results.flatMap((result) => result.faults), ...(await faultsOfCount(started))]
        return { tries: results.reduce((sum, { tries }) => sum + tries, 0), faults }
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
  /** How many messages each inbox was sent. */
  sent: Map<string, number>
  world: World
  outside: Outside
  directory: string
  seed: number
}

/** Sends the box messages by clients, some at once. */
async function deliverAll(number: number, count: number, started: Started): Promise<CaseResult> {
  const { seed, box, outside } = started
  const deliveries = Array.from({ length: count }, (_, index) => () => {
    const random = randomFrom(caseSeed(caseSeed(seed, number), index))
    const client = pick(clients, random)
    const trusted = !client.clear && random(2) === 0 ? outside.authorities : undefined
    const text = messageOf(`${seed}-${number}-${index}`, random)
    return told(started, `${seed}-${number}-${index}`, { name: client.name, text }, async (delivery) => {
      const fault = await refusalOf(client.send({ ...delivery, ...box.smtp, trusted }))
      if (fault !== undefined) return fault
      const sent = (client.keepsBody ? text.slice(text.indexOf('\r\n\r\n')) : text) + (client.adds?.(text) ?? '')
      return faultOfKept(box, delivery.inbox.id, sent, traceOf(client, trusted !== undefined))
    })
  })
  return { tries: count, faults: (await atOnce(abreast, deliveries)).flat() }
}

/** The fields before a message that came from a client. */
function traceOf({ keepsBody }: Client, overTls: boolean): RegExp {
  return new RegExp(
    `^Received: .*\\r\\n${overTls ? '\\t\\(using TLSv1' : '\\tby '}.*\\r\\n(?:[ \\t].*\\r\\n)*${keepsBody ? '' : '$'}`,
  )
}

/** Has each of the servers relay messages to the box, some at once. */
async function relayAll(number: number, count: number, started: Started): Promise<CaseResult> {
  const { seed, box, outside } = started
  const relays = outside.servers.filter((server) => server.relays)
  const relayings = Array.from({ length: count * relays.length }, (_, index) => () => {
    const relay = relays[index % relays.length]!
    const random = randomFrom(caseSeed(caseSeed(seed + 2, number), index))
    const id = `by-${seed}-${number}-${index}`
    const text = messageOf(id, random)
    return told(started, id, { name: relay.name, text }, async (delivery) => {
      const { host, port } = relay.place
      const trusted = relay.offersTls ? outside.authorities : undefined
      const fault = await refusalOf(byPython({ ...delivery, host, port, trusted }))
      if (fault !== undefined) return fault
      if (!(await hasCome(box, delivery.inbox, `<${id}@client.test>`))) return 'it has not come'
      return faultOfKept(box, delivery.inbox.id, text, traceOfRelay(relay))
    })
  })
  return { tries: relayings.length, faults: (await atOnce(abreast, relayings)).flat() }
}

/** The fields before a message that came from a relay: one of the box and those of the relay. */
function traceOfRelay({ offersTls }: RunningServer): RegExp {
  return offersTls
    ? /^Received: .*\r\n\t\(using TLSv1.*\r\n(?:[ \t].*\r\n)*(?:Received: .*\r\n(?:[ \t].*\r\n)*)+$/
    : /^Received: .*\r\n\tby .*\r\n(?:[ \t].*\r\n)*(?:Received: .*\r\n(?:[ \t].*\r\n)*)+$/
}

/** Waits for a message that is relayed. */
async function hasCome(box: RunningBox, inbox: Named, messageId: string): Promise<boolean> {
  for (const end = Date.now() + patience; Date.now() < end; await sleep(50))
    for (const spam of [false, true]) {
      const { data } = await box.get('GET', `/v1/identities/${inbox.id}/emails?limit=1&duplicates=true&spam=${spam}`)
      if ((data as { message_id: string }[])[0]?.message_id === messageId) return true
    }
  return false
}

async function refusalOf(sending: Promise<unknown>): Promise<string | undefined> {
  try {
    await sending
    return undefined
  } catch (error) {
    return `it was not accepted: ${(error as Error).message.slice(0, 500)}`
  }
}

/** Has a message sent to an inbox that is free; tells what is wrong with it, and keeps the message. */
function told(
  { inboxes, sent, directory: all }: Started,
  id: string,
  { name, text }: { name: string; text: string },
  send: (delivery: Omit<Delivery, 'host' | 'port'> & { inbox: Named }) => Promise<string | undefined>,
): Promise<string[]> {
  return inboxes.lend(async (inbox) => {
    const directory = join(all, inbox.id)
    mkdirSync(directory, { recursive: true })
    sent.set(inbox.id, (sent.get(inbox.id) ?? 0) + 1)
    const fault = await send({ from: 'a@client.test', to: inbox.email, text, directory, inbox })
    if (fault === undefined) return []
    const file = join(tmpdir(), `torture-peers-${id}.eml`)
    writeFileSync(file, text, 'latin1')
    return [`message ${id} by ${name}: ${fault}; in ${file}`]
  })
}

/** Compares how many messages the inboxes have with how many they were sent. */
async function faultsOfCount({ box, sent }: Started): Promise<string[]> {
  const faults: string[] = []
  for (const [id, count] of sent) {
    let kept = 0
    for (const spam of [false, true]) kept += (await box.list(`/v1/identities/${id}/emails?duplicates=true&spam=${spam}`)).length
    if (kept !== count) faults.push(`an inbox was sent ${count} messages and has ${kept}`)
  }
  return faults
}

function names(all: { name: string }[]): string {
  return all.map(({ name }) => name).join(', ')
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
