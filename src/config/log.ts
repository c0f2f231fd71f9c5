import type * as z from 'zod'
import { logLevels, type LogModule, modules } from '../core/log.ts'
import { Choice, Group, Named } from './values.ts'

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
