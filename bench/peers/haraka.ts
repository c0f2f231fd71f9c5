import { execFileSync, spawn } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { freePort } from './postfix.ts'

/** Haraka that takes everything, and says 250 when the raw message is in a file of its own and forced to disk. It parses and checks nothing. */
export interface Haraka {
  host: string
  port: number
  pid: number
  clear(): void
  stop(): void
}

const home = process.env['BENCH_HARAKA_DIR'] ?? join(tmpdir(), 'pillarbox-bench-haraka')
const release = '3.3.4'

/** Installs Haraka outside the project when it is not there; answers whether it is. */
export function installHaraka(): boolean {
  if (existsSync(program())) return true
  mkdirSync(home, { recursive: true })
  writeFileSync(
    join(home, 'package.json'),
    JSON.stringify({ private: true, overrides: { 'encoding-japanese': '2.4.0', libqp: '2.1.2' } }),
  )
  const options = ['--ignore-scripts', '--omit=dev', '--omit=optional', '--no-audit', '--no-fund']
  try {
    execFileSync('npm', ['install', ...options, `haraka@${release}`], { cwd: home, stdio: 'ignore', timeout: 300_000 })
  } catch {
    return false
  }
  return existsSync(program())
}

/** Starts it with one process, as it comes. */
export async function startHaraka(directory: string): Promise<Haraka> {
  const port = await freePort()
  const kept = join(directory, 'haraka-kept')
  const config = join(directory, 'haraka')
  for (const path of [kept, join(config, 'config'), join(config, 'plugins')]) mkdirSync(path, { recursive: true })
  const files: Record<string, string> = {
    'config/smtp.ini': `listen=127.0.0.1:${port}\nnodes=0\n`,
    'config/log.ini': '[main]\nlevel=error\n',
    'config/plugins': 'keep\n',
    'config/me': 'peer.test\n',
    'plugins/keep.js': plugin(kept),
  }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(config, name), text)
  copyFileSync(join(home, 'node_modules/haraka/config/connection.ini'), join(config, 'config/connection.ini'))
  const child = spawn(process.execPath, [program(), '-c', config], { stdio: 'ignore' })
  await listening(port)
  return {
    host: '127.0.0.1',
    port,
    pid: child.pid!,
    clear() {
      for (const name of readdirSync(kept)) rmSync(join(kept, name))
    },
    stop: () => void child.kill(),
  }
}

function program(): string {
  return join(home, 'node_modules/haraka/bin/haraka')
}

function plugin(directory: string): string {
  return `const fs = require('node:fs')
exports.hook_rcpt = (next) => next(OK)
exports.hook_queue = (next, connection) => {
  const { transaction } = connection
  const file = fs.createWriteStream(${JSON.stringify(directory)} + '/' + transaction.uuid, { flush: true })
  file.on('error', () => next(DENYSOFT))
  file.on('close', () => next(OK))
  transaction.message_stream.pipe(file)
}
`
}

async function listening(port: number): Promise<void> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const open = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(true))
      socket.on('error', () => resolve(false))
      socket.on('connect', () => socket.destroy())
    })
    if (open) return
    await pause(100)
  }
  throw new Error('Haraka does not listen')
}
