import { spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { freePort } from './free-port.ts'
import { asUser, postgresPrograms, type PostgresServer } from './postgres-server.ts'
import { succeed } from './program.ts'

/** Starts a standby of a server under this name, copied by pg_basebackup; it ends with the returned function, or with the test. */
export async function startStandby(primary: PostgresServer, name: string): Promise<() => Promise<void>> {
  const programs = postgresPrograms()!
  const directory = mkdtempSync(join(tmpdir(), 'pillarbox-standby-'))
  chmodSync(directory, 0o777)
  const data = join(directory, 'data')
  const from = `host=127.0.0.1 port=${primary.port} user=postgres`
  const copying = ['--pgdata', data, '--dbname', from, '--write-recovery-conf', '--checkpoint=fast', '--no-sync']
  await succeed('setpriv', [...asUser, join(programs, 'pg_basebackup'), ...copying], { cwd: directory })
  const settings = {
    port: String(await freePort()),
    listen_addresses: '127.0.0.1',
    unix_socket_directories: directory,
    primary_conninfo: `${from} application_name=${name}`,
    // as the primary has it
    max_connections: '400',
    fsync: 'off',
    shared_buffers: '16MB',
  }
  const flags = Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`])
  const child = spawn('setpriv', [...asUser, join(programs, 'postgres'), '-D', data, ...flags], {
    cwd: directory,
    stdio: 'ignore',
  })
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const stop = async (): Promise<void> => {
    child.kill('SIGQUIT')
    await ended
    rmSync(directory, { recursive: true, force: true })
  }
  onTestFinished(stop)
  return stop
}
