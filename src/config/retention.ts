import { day } from '../core/clock.ts'
import { Duration, Group, Text, time, Whole } from './values.ts'

const longest = 36_500 * day

/** The retention of stored data. */
export const retention = Group({
  trash: Duration(0, longest).prefault('30 d').meta({
    description:
      'Time for which deleted messages, and those of deleted identities, can be restored; they count towards the quota until then, and are purged earlier when space is short. 0 deletes immediately',
    unit: time,
  }),
  raw: Duration(7 * day, longest)
    .optional()
    .meta({
      description:
        'Time after which the raw bytes of an e-mail are deleted, and with them its source and attachments; its text, codes and links stay',
      unit: time,
      otherwise: 'as long as the e-mail',
      example: '90 d',
    }),
  events: Duration(day, longest).prefault('365 d').meta({
    description: 'Time for which events are kept; since with an older event is rejected (since_expired)',
    unit: time,
  }),
  audit: Duration(day, longest).prefault('400 d').meta({
    description: 'Time for which the audit log is kept: who did what, reads of messages and codes included',
    unit: time,
  }),
  deliveries: Duration(day, 365 * day)
    .prefault('30 d')
    .meta({ description: 'Time for which delivery attempts of mail, webhooks and text messages are kept', unit: time }),
})

/** Backups that the box makes itself. */
export const backup = Group({
  directory: Text('the path of a directory').optional().meta({
    description: 'Directory for the files of POST /v1/backups and pillarbox backup --auto: it must exist, outside data_dir',
    directory: true,
    example: '/var/backups/pillarbox',
  }),
  passphrase_file: Text('the path of a file').optional().meta({
    description: 'File whose first line is the passphrase that encrypts the keys in backups; without it the keys are left out',
    file: true,
    example: '/run/secrets/pillarbox-backup-passphrase',
  }),
  keep: Whole(1, 10_000).prefault(7).meta({ description: 'Number of newest backups of this box to keep', unit: 'files' }),
})
