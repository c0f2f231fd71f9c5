import { Address, Choice, Group, List, MailDomain, Named, WebAddress } from './values.ts'
import type * as z from 'zod'
import { logLevels, type LogModule, modules } from '../core/log.ts'

const Level = Choice(logLevels)

const shape = Object.fromEntries(
  modules.map((module) => [
    module,
    Level.optional().meta({
      description: `Level of lines with "part":"${module}"`,
      otherwise: 'log.level',
      example: 'debug',
    }),
  ]),
) as { [module in LogModule]: z.ZodOptional<typeof Level> }

/** The settings of the log. */
export const log = Group({
  level: Level.prefault('info').meta({ description: 'Minimum level of log lines' }),
  levels: Named(shape).prefault({}).meta({
    description:
      'Minimum level for single modules, named as in the field part of their lines; at debug, smtp, submission and outbound log every command and reply, without messages and secrets',
  }),
})

/** Settings of the doctor. */
export const doctor = Group({
  addresses: List(Address, 'addresses')
    .prefault([])
    .meta({
      description: 'Public addresses of this machine, if they differ from the addresses that hostname resolves to here',
      example: ['192.0.2.25', '2001:db8::25'],
    }),
  blocklists: List(MailDomain, 'domains').prefault(['zen.spamhaus.org', 'bl.spamcop.net', 'psbl.surriel.com']).meta({
    description: 'DNS block lists in which the public addresses are looked up every 6 hours; [] turns this off',
  }),
  probe_domain: MailDomain.prefault('gmail.com').meta({
    description:
      'Domain whose mail server is contacted every 6 hours to check that outgoing port 25 is open; only from a public address, and only while no other mail is being sent',
  }),
  time_url: WebAddress.optional().meta({
    description: 'HTTPS URL whose Date header the clock is compared with',
    otherwise: "the system's time synchronization is checked (timedatectl, chronyc)",
    example: 'https://www.example.com',
  }),
})
