import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pick, randomFrom } from '../../support/random.ts'
import { type RunningBox, World } from '../box/world.ts'
import { clients, missingClient } from '../peers/clients.ts'
import { messageOf } from '../peers/message.ts'
import { type Cases, caseSeed, type CaseResult, type Setting, type Trial } from '../trial.ts'
import { difference, withoutTrace } from './mail.ts'

const messagesOfCase = 10

export const peers: Trial = {
  name: 'peers',
  about:
    `Messages with dots, octets above 127, control characters, long and empty lines, attachments, without a body and of 10 MB are sent to a box by ` +
    `${clients.map(({ name }) => name).join(', ')}. Each is accepted, and the box returns it byte for byte.`,
  goal: { tries: 20_000, unit: 'deliveries', faults: '0 refused, 0 kept differently from sent' },
  short: 10,
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
  },
  missing: missingClient,
  async open({ directory, program, seed }: Setting): Promise<Cases> {
    const world = await World.open(directory, program, randomFrom(seed))
    const box = await world.start(world.home('box'))
    return {
      run: (number) => deliverAll(number, { world, box, directory, seed }),
      async close() {
        await box.process.end('SIGKILL')
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
      () => faultOf(text + (client.adds?.(text) ?? ''), inbox.id, box),
      (error: unknown) => `it was not accepted: ${(error as Error).message.slice(0, 500)}`,
    )
    if (fault === undefined) continue
    const file = join(tmpdir(), `torture-peers-${seed}-${number}-${index}.eml`)
    writeFileSync(file, text, 'latin1')
    faults.push(`message ${index} by ${client.name}: ${fault}; in ${file}`)
  }
  return { tries: messagesOfCase, faults }
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
