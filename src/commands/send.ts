import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Command } from 'commander'
import type { Delivery, Email } from '../mail/model.ts'
import { type Box, type BoxOptions, identityNamed, ofBox, whichIdentity, withBox } from './support/box.ts'
import { Failure } from './support/refuse.ts'
import { say } from './support/say.ts'
import { wholeNumber } from './support/whole-number.ts'

interface Options extends BoxOptions {
  from: string
  to: string[]
  subject: string
  text?: string
  wait?: true | number
}

const pause = 250
const timeout = 120

const over = ['delivered', 'sent', 'bounced', 'failed', 'cancelled']

export function addSendCommand(program: Command): void {
  const send = program
    .command('send')
    .description('send a test message as an identity; the box must run')
    .requiredOption('--from <identity>', whichIdentity)
    .requiredOption('--to <address...>', 'its recipients')
    .option('--subject <subject>', 'its subject', 'A test of Pillarbox')
    .option('--text <text>', 'its text (default: standard input)')
    .option(
      '--wait [seconds]',
      `show each step until it is delivered or failed, for at most this many seconds (default: ${timeout})`,
      wholeNumber(1),
    )
  ofBox(send).action(deliver)
}

async function deliver(options: Options): Promise<void> {
  await withBox(options, async (box) => {
    if (!box.running) throw new Failure('The box is not running and cannot send. Start it: pillarbox serve', 'not_running')
    const { id } = await identityNamed(box, options.from)
    const body_text = options.text ?? (await typed())
    const at = `/v1/identities/${id}/emails`
    const { subject, to, wait } = options
    const email = await box.call<Email>('POST', at, { to, subject, body_text })
    if (wait === undefined) return say(options, email, `${email.id} of ${email.from} was accepted for sending.`)
    const last = await watched(
      box,
      `${at}/${email.id}`,
      wait === true ? timeout : wait,
      options.json === true ? () => undefined : step,
    )
    if (options.json) say(options, last, '')
    // a script can use the exit status
    if (last.deliveries.some(({ status }) => status !== 'delivered' && status !== 'sent')) process.exitCode = 1
  })
}

/** Polls until every delivery has ended or the timeout; returns the last state of the message. */
async function watched(box: Box, path: string, seconds: number, onDelivery: (one: Delivery) => void): Promise<Email> {
  const end = Date.now() + seconds * 1000
  const seen = new Map<string, string>()
  for (;;) {
    const email = await box.call<Email>('GET', path)
    for (const one of email.deliveries) {
      const state = `${one.status} ${one.attempts}`
      if (seen.get(one.recipient) !== state) onDelivery(one)
      seen.set(one.recipient, state)
    }
    if (email.deliveries.every(({ status }) => over.includes(status)) || Date.now() >= end) return email
    await sleep(pause)
  }
}

function step({ recipient, status, response, mx, tls, next_attempt_at }: Delivery): void {
  const by = mx === null ? '' : ` by ${mx}${tls === null ? ' without TLS' : ` over ${tls}`}`
  const next = next_attempt_at === null || status === 'queued' ? '' : `; next attempt at ${next_attempt_at}`
  say({}, null, `${recipient}  ${status}${by}${response === null ? '' : `: ${response}`}${next}`)
}

async function typed(): Promise<string> {
  if (process.stdin.isTTY) process.stderr.write('Type the message, then Ctrl-D.\n')
  return text(process.stdin)
}
