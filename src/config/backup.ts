import { Group, Text, Whole } from './values.ts'

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
