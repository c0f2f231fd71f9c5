import { day } from '../core/clock.ts'
import { Duration, Group, Text, time, Whole } from './values.ts'

const longest = 36_500 * day

/** How long things are kept. */
export const retention = Group({
  trash: Duration(0, longest).prefault('30 d').meta({
    description:
      'How long deleted messages can be restored, and those of deleted identities stay; they take room until then, and make way when it is short. 0: they go at once',
    unit: time,
  }),
  raw: Duration(7 * day, longest)
    .optional()
    .meta({
      description:
        'After so long the octets of an e-mail are let go of, and with them its source and attachments; its text, codes and links stay',
      unit: time,
      otherwise: 'as long as the e-mail',
      example: '90 d',
    }),
  events: Duration(day, longest).prefault('365 d').meta({
    description: 'How long the log keeps events; since with an older one is refused (since_expired)',
    unit: time,
  }),
  deliveries: Duration(day, 365 * day)
    .prefault('30 d')
    .meta({ description: 'How long it is kept how deliveries went: attempts at mail, webhooks and text messages', unit: time }),
})

/** Backups that the box makes itself. */
export const backup = Group({
  directory: Text('the path of a directory').optional().meta({
    description: 'Where POST /v1/backups and pillarbox backup --auto put their files: it must be there, outside data_dir',
    directory: true,
    example: '/var/backups/pillarbox',
  }),
  passphrase_file: Text('the path of a file').optional().meta({
    description: 'The file whose first line the keys are sealed under in them; without it the keys are left out',
    file: true,
    example: '/run/secrets/pillarbox-backup-passphrase',
  }),
  keep: Whole(1, 10_000).prefault(7).meta({ description: 'The newest of this box that are kept there', unit: 'files' }),
})
