import * as z from 'zod'
import { Timestamp } from '../../core/shapes.ts'

export const Backup = z
  .object({
    name: z.string().meta({ description: 'name of its file in backup.directory', example: 'pillarbox-20261121T030000000Z.tar' }),
    size: z.int().meta({ description: 'bytes' }),
    box_id: z.string(),
    created_at: Timestamp.meta({ description: 'the time of its state' }),
    program_version: z.string(),
    database_version: z.int(),
    keys: z.boolean().meta({ description: 'whether it contains the keys, encrypted with a passphrase' }),
    rows: z.record(z.string(), z.int()).meta({ description: 'number of rows of each table' }),
  })
  .meta({ id: 'Backup' })
export type Backup = z.output<typeof Backup>
