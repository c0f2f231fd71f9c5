import { Resolver } from 'node:dns/promises'
import { connect } from 'node:net'
import { networkInterfaces } from 'node:os'
import { isPublic } from '../net/public-addresses.ts'
import { listenerAt } from './listeners.ts'

export interface Finding {
  subject: 'addresses' | 'hostname' | 'ptr' | 'port_25_in' | 'port_25_out' | 'web_server'
  good: boolean
  /** The finding, with a remedy for a problem. */
  text: string
}

export interface MachineOptions {
  hostname: string
  domain: string
  /** A domain whose mail servers may be contacted, to test port 25; undefined: no outside connections. */
  outside: string | undefined
  port: number
  /** Name servers; empty: the system's. */
  servers: string[]
  addresses: string[]
}

const timeout = 3000

export function ownAddresses(): string[] {
  return Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    .filter(({ internal, address }) => !internal && !address.startsWith('fe80:'))
    .map(({ address }) => address)
}

/** Checks the machine. Changes nothing, contacts only the DNS and one mail server, and works without a network. */
export async function checkMachine(input: MachineOptions): Promise<Finding[]> {
  const local = [addresses(input), ...ports()]
  if (input.outside === undefined) return local
  const resolver = new Resolver({ timeout: timeout, tries: 1 })
  if (input.servers.length > 0) resolver.setServers(input.servers)
  const reachable = input.addresses.filter(isPublic)
  const [name, pointers, out] = await Promise.all([
    hostname(input, resolver),
    Promise.all(reachable.map((address) => pointer(address, input, resolver))),
    portOut(input.outside, input.port, resolver),
  ])
  return [...local, name, ...pointers, out]
}

function addresses({ addresses: own }: MachineOptions): Finding {
  const reachable = own.filter(isPublic)
  if (reachable.length > 0) return finding('addresses', true, `Its interfaces have the public addresses ${reachable.join(', ')}.`)
  const has = own.length === 0 ? 'no address at all' : `only ${own.join(', ')}`
  const text = `No interface has a public address (${has}): the machine is behind NAT, and port 25 (and 443, 80) must be forwarded to it.`
  return finding('addresses', false, text)
}

async function hostname({ hostname: name, addresses: own }: MachineOptions, resolver: Resolver): Promise<Finding> {
  const subject = 'hostname'
  const [four, six] = await Promise.all([resolver.resolve4(name).catch(failure), resolver.resolve6(name).catch(failure)])
  const found = [four, six].flatMap((answer) => (Array.isArray(answer) ? answer : []))
  const strange = found.filter((address) => !own.includes(address))
  if (found.length === 0) {
    const unanswered = [four, six].some((answer) => !Array.isArray(answer) && !['ENOTFOUND', 'ENODATA'].includes(answer))
    if (unanswered) return finding(subject, false, `The DNS lookup of ${name} failed.`)
    return finding(subject, false, `${name} has no address in the DNS yet: publish the records below.`)
  }
  if (strange.length === 0) return finding(subject, true, `${name} points here (${found.join(', ')}).`)
  return finding(
    subject,
    false,
    `${name} points to ${strange.join(', ')}, which no interface of this machine has: correct only behind NAT.`,
  )
}

async function pointer(address: string, { hostname: name }: MachineOptions, resolver: Resolver): Promise<Finding> {
  const subject = 'ptr'
  const names = await resolver.reverse(address).catch(failure)
  const where = 'the provider of the address sets it (PTR, "reverse DNS"), and large receivers reject mail without it'
  if (!Array.isArray(names)) {
    if (!['ENOTFOUND', 'ENODATA'].includes(names)) return finding(subject, false, `The reverse DNS lookup of ${address} failed.`)
    return finding(subject, false, `${address} has no reverse DNS: it should be ${name}; ${where}.`)
  }
  if (names.some((one) => one.toLowerCase() === name)) return finding(subject, true, `The reverse DNS of ${address} is ${name}.`)
  return finding(subject, false, `The reverse DNS of ${address} is ${names.join(', ')}, it should be ${name}; ${where}.`)
}

async function portOut(domain: string, port: number, resolver: Resolver): Promise<Finding> {
  const subject = 'port_25_out'
  const servers = await resolver.resolveMx(domain).catch(failure)
  if (!Array.isArray(servers))
    return finding(subject, false, `Outgoing port 25 could not be checked: no mail server of ${domain} was found in the DNS.`)
  const best = servers.toSorted((one, other) => one.priority - other.priority).slice(0, 2)
  for (const { exchange } of best) {
    const [address] = await resolver.resolve4(exchange).catch(() => [])
    if (address && (await greets(address, port))) return finding(subject, true, `Outgoing port 25 is open: ${exchange} answered.`)
  }
  return finding(
    subject,
    false,
    `Outgoing port 25 is closed (no mail server of ${domain} answered): many providers open it only on request. ` +
      'Until then mail can be sent through a relay (outbound.mode: relay); receiving is not affected.',
  )
}

function greets(address: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: address, port, timeout: timeout })
    const done = (answer: boolean): void => {
      socket.destroy()
      resolve(answer)
    }
    socket.once('data', (line) => {
      socket.end('QUIT\r\n')
      done(line.toString('latin1').startsWith('2'))
    })
    socket.on('error', () => done(false))
    socket.on('timeout', () => done(false))
    socket.on('close', () => done(false))
  })
}

/** Mail servers by process name, with the command that stops each. */
const mailServers: Record<string, [string, string]> = {
  master: ['Postfix', 'postfix'],
  exim4: ['Exim', 'exim4'],
  exim: ['Exim', 'exim4'],
  'sendmail-mta': ['Sendmail', 'sendmail'],
  smtpd: ['OpenSMTPD', 'opensmtpd'],
}

function ports(): Finding[] {
  const mail = listenerAt(25)
  const web = [443, 80].map(listenerAt).find((program) => program !== undefined)
  return [mailPort(mail), ...(web === undefined ? [] : [webServer(web)])]
}

function mailPort(program: string | undefined): Finding {
  if (program === undefined) return finding('port_25_in', true, 'Port 25 of this machine is free.')
  const [name, unit] = mailServers[program] ?? [program || 'another program', undefined]
  const remedy = unit === undefined ? 'stop it' : `stop it (systemctl disable --now ${unit})`
  return finding('port_25_in', false, `${name} uses port 25 of this machine: ${remedy}, or assign the box another address.`)
}

function webServer(program: string): Finding {
  const name = program || 'A web server'
  const text = `${name} uses the web ports of this machine: configure it as a reverse proxy for the API, see docs/install.md (--behind-proxy).`
  return finding('web_server', false, text)
}

function finding(subject: Finding['subject'], good: boolean, text: string): Finding {
  return { subject, good, text }
}

function failure(error: NodeJS.ErrnoException): string {
  return error.code ?? 'failed'
}
