import { Address, Choice, Group, List, MailDomain, Named, WebAddress } from './values.ts'
import type * as z from 'zod'
import { logLevels, type LogModule, modules } from '../core/log.ts'

const Level = Choice(logLevels)

const shape = Object.fromEntries(
  modules.map((module) => [
    module,
    Level.optional().meta({
      description: `Of lines with "part":"${module}"`,
      otherwise: 'log.level',
      example: 'debug',
    }),
  ]),
) as { [module in LogModule]: z.ZodOptional<typeof Level> }

/** What the box says of itself. */
export const log = Group({
  level: Level.prefault('info').meta({ description: 'The least important line that is still written' }),
  levels: Named(shape).prefault({}).meta({
    description:
      'The same for single modules, by the field part of their lines; at debug, smtp, submission and outbound write every command and reply, without messages and secrets',
  }),
})

/** Looking after the box. */
export const doctor = Group({
  addresses: List(Address, 'addresses')
    .prefault([])
    .meta({
      description: 'The public addresses of this machine, where they are not those that hostname has in the DNS as it sees it',
      example: ['192.0.2.25', '2001:db8::25'],
    }),
  blocklists: List(MailDomain, 'domains').prefault(['zen.spamhaus.org', 'bl.spamcop.net', 'psbl.surriel.com']).meta({
    description: 'DNS block lists that are asked every 6 hours whether they name our public addresses; [] asks none',
  }),
  probe_domain: MailDomain.prefault('gmail.com').meta({
    description:
      'Whose mail server is greeted every 6 hours, to see that port 25 is open outwards; only from a public address, and while no mail leaves anyway',
  }),
  time_url: WebAddress.optional().meta({
    description: 'Whose Date our clock is compared with',
    otherwise: 'the system is asked whether it keeps its clock right (timedatectl, chronyc)',
    example: 'https://www.example.com',
  }),
})
