import { Group, PostgresUrl, Switch } from '../values.ts'

/** Where all data but files is stored. */
export const database = Group({
  url: PostgresUrl.optional().meta({
    description:
      'URL of a PostgreSQL database, 14 or newer, in UTF8; sslmode can be verify-full, require (the certificate is not verified) or disable, which is the default for this machine only (docs/install.md)',
    otherwise: 'SQLite in data_dir',
    secret: true,
    restart: true,
  }),
  several: Switch.prefault(false).meta({
    description:
      'Lets several boxes use the database at the same time; each must set it, and have the same master key (docs/several-boxes.md)',
    restart: true,
  }),
})
