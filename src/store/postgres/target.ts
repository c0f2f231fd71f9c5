/** The server and the database that a URL names. */
export interface PostgresTarget {
  /** A name, an address, or the directory of a Unix socket. */
  host: string
  port: number
  user: string | undefined
  password: string | undefined
  database: string
  /** How much TLS the connection has: none, unverified, or with the certificate of the host checked. */
  sslmode: 'disable' | 'require' | 'verify-full'
  /** The file of the certificates that are trusted instead of those of the system. */
  sslrootcert: string | undefined
}

/** The target in a sentence, without the user and the password. */
export function describeTarget({ host, port, database }: PostgresTarget): string {
  return `the database ${database} of ${host.includes(':') ? `[${host}]` : host}:${port}`
}
