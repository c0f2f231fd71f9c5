import { bytes, Duration, Group, PostgresUrl, Size, Switch, Text, time, WebAddress } from '../values.ts'

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

/** A store of objects that speaks the protocol of Amazon S3. */
const s3 = Group({
  endpoint: WebAddress.meta({
    description: 'URL of the store, without the bucket',
    example: 'https://s3.eu-central-1.amazonaws.com',
    restart: true,
  }),
  bucket: Text('the name of a bucket')
    .regex(/^[A-Za-z0-9][\w.-]{1,254}$/, { error: 'must be the name of a bucket, such as pillarbox-mail' })
    .meta({ description: 'Bucket, which must exist', example: 'pillarbox-mail', restart: true }),
  region: Text('a region').prefault('us-east-1').meta({
    description: 'Region that requests are signed for; most stores but that of Amazon take any',
    restart: true,
  }),
  access_key_id: Text('an access key').meta({
    description: 'Access key: it must be allowed to read, write and delete objects of the bucket',
    example: 'pillarbox',
    restart: true,
  }),
  secret_access_key: Text('a secret key').meta({
    description: 'Secret of the access key',
    secret: true,
    restart: true,
  }),
  prefix: Text('the beginning of names of objects')
    .regex(/^[\w./-]{1,200}$/, { error: 'must be letters, digits and ._-/, such as pillarbox/' })
    .prefault('pillarbox/')
    .meta({
      description: 'Beginning of the names of all objects; boxes that do not share a database must not have the same',
      restart: true,
    }),
  path_style: Switch.prefault(true).meta({
    description: 'Names the bucket in the path of URLs; false: in the host name, as Amazon prefers it',
    restart: true,
  }),
  above: Size(0).prefault('256 KiB').meta({
    description: 'Size above which the raw bytes of an e-mail are stored there; smaller ones are in the database',
    unit: bytes,
    restart: true,
  }),
  timeout: Duration(100, 120_000).prefault('30 s').meta({
    description: 'Timeout for storing or reading one message, retries included',
    unit: time,
    restart: true,
  }),
})

/** Where large data is stored. */
export const blobs = Group({
  s3: s3.optional().meta({
    description: 'Raw bytes of large e-mails in an S3-compatible store, instead of in the database (docs/install.md)',
  }),
})
