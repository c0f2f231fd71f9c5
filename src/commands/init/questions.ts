import type * as z from 'zod'
import { HostName, MailAddress, MailDomain } from '../../config/values.ts'
import type { InitChoice } from '../../install/settings.ts'
import { listenerAt } from '../../install/listeners.ts'
import { exits, Failure, refuse } from '../support/refuse.ts'
import { askLine, askYes, begin } from '../support/prompt.ts'

export interface InitOptions {
  domain?: string
  hostname?: string
  email?: string
  data?: string
  config?: string
  units?: string
  behindProxy?: boolean
  agreeTerms?: boolean
  offline?: boolean
  yes?: boolean
  json?: boolean
}

/** The operator's choices: from the command line, or asked for. A wrong command line ends the process. */
export async function chosenBy(options: InitOptions, lowPorts: boolean): Promise<InitChoice> {
  const given = {
    domain: read(MailDomain, 'domain', options.domain),
    hostname: read(HostName, 'hostname', options.hostname),
    email: read(MailAddress, 'email', options.email),
  }
  if (!options.yes) return { ...(await asked(options, given)), lowPorts }
  if (given.domain === undefined)
    wrong('--yes requires --domain: the domain of the addresses, such as agents.example.com.', 'domain')
  const { domain, email, hostname = `mx.${domain}` } = given
  return { domain, hostname, email, behindProxy: options.behindProxy ?? false, agreed: options.agreeTerms ?? false, lowPorts }
}

interface Given {
  domain: string | undefined
  hostname: string | undefined
  email: string | undefined
}

async function asked(options: InitOptions, given: Given): Promise<Omit<InitChoice, 'lowPorts'>> {
  if (options.json || !process.stdin.isTTY) wrong('Standard input is not a terminal: use --yes, --domain and --hostname.', 'yes')
  begin('Set up Pillarbox')
  const domain = given.domain ?? (await line(MailDomain, { message: 'Domain of the addresses (agents.example.com)' }))!
  const hostname =
    given.hostname ??
    (await line(HostName, { message: 'Host name of this machine, the target of the MX record', usual: `mx.${domain}` }))!
  const email =
    given.email ??
    (await line(MailAddress, {
      message: 'Address to which mail for postmaster and abuse is forwarded (empty: none)',
      optional: true,
    }))
  const web = [443, 80].map(listenerAt).find((program) => program !== undefined)
  const behindProxy =
    options.behindProxy ??
    (web !== undefined && (await askYes(`${web || 'A web server'} uses ports 80 or 443. Use it as a reverse proxy for the API?`)))
  const agreed =
    options.agreeTerms ?? (await askYes("Obtain certificates from Let's Encrypt, and agree to its terms of service?"))
  const go = await askYes(`Set up a box for ${domain} on ${hostname}?`)
  if (!go) throw new Failure('Nothing was changed.', 'cancelled')
  return { domain, hostname, email, behindProxy, agreed }
}

async function line(
  schema: z.ZodType<string>,
  question: { message: string; usual?: string; optional?: boolean },
): Promise<string | undefined> {
  const answer = await askLine({ ...question, flaw: (text) => flawOf(schema, text) })
  return answer === undefined ? undefined : schema.parse(answer)
}

function flawOf(schema: z.ZodType<string>, text: string): string | undefined {
  const message = schema.safeParse(text).error?.issues[0]?.message
  return message === undefined ? undefined : `It ${message}.`
}

function read(schema: z.ZodType<string>, name: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  const flaw = flawOf(schema, text)
  if (flaw !== undefined) wrong(`--${name} ${flaw.slice(3)}`, name)
  return schema.parse(text)
}

function wrong(message: string, param: string): never {
  return refuse(new Failure(message, 'invalid_request', param), exits.usage)
}
