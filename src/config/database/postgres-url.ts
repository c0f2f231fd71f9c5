import type { PostgresTarget } from '../../store/postgres/target.ts'

const sslModes = ['disable', 'require', 'verify-full'] as const

const parameters = ['host', 'sslmode', 'sslrootcert']

/** `postgres://user:password@host:port/database?sslmode=verify-full`. Throws an Error that says what is wrong, without the URL. */
export function parsePostgresUrl(text: string): PostgresTarget {
  // a URL of a Unix socket has no host
  const url = URL.parse(text.replace(/^(postgres(?:ql)?:\/\/(?:[^@/]*@)?)(?=\/)/, '$1socket.invalid'))
  if (!url || !/^postgres(?:ql)?:$/.test(url.protocol)) throw new Error('must be a URL such as postgres://user@host/database')
  // neither are repeated: a password with an unescaped ? would be
  if ([...url.searchParams.keys()].some((name) => !parameters.includes(name)))
    throw new Error(`has an unknown parameter; there are ${parameters.join(', ')}`)
  const socket = url.searchParams.get('host') ?? undefined
  const bare = url.hostname === 'socket.invalid'
  if (socket === undefined ? bare : !bare || !socket.startsWith('/'))
    throw new Error(
      'must name one host: postgres://user@host/database, or postgres://user@/database?host=/directory of a Unix socket',
    )
  const database = decode(url.pathname.slice(1))
  if (database === '' || database.includes('/')) throw new Error('must name a database: postgres://user@host/database')
  const local = socket !== undefined || ['localhost', '127.0.0.1', '[::1]'].includes(url.hostname)
  const sslmode = url.searchParams.get('sslmode') ?? (local ? 'disable' : 'verify-full')
  const known = sslModes.find((mode) => mode === sslmode)
  if (known === undefined) throw new Error(`has an unknown sslmode; there are ${sslModes.join(', ')}`)
  return {
    host: socket ?? url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: url.port === '' ? 5432 : Number(url.port),
    user: url.username === '' ? undefined : decode(url.username),
    password: url.password === '' ? undefined : decode(url.password),
    database,
    sslmode: socket === undefined ? known : 'disable',
    sslrootcert: url.searchParams.get('sslrootcert') ?? undefined,
  }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new Error('has a % that is not part of an escape such as %20')
  }
}
