import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { App } from '../../src/app.ts'
import { loadConfig } from '../../src/config.ts'
import { createLog } from '../../src/core/log.ts'
import type { Line } from '../../src/ops/doctor/model.ts'
import { DnsStub } from './dns-stub.ts'
import { freePort } from './free-port.ts'
import { run, succeed } from './program.ts'

/** Whom the box belongs to: nobody that this machine knows. */
export const owner = { uid: 61_234, gid: 61_234 }

/** Who asks: root, or the user that the box runs as. */
export type Asker = 'root' | 'user'

const program = new URL('../../src/main.ts', import.meta.url).pathname

interface Report {
  code: number | null
  lines: Line[]
  /** The line of a name whose subject ends so; throws when there is none. */
  line: (name: string, subject?: string) => Line
}

/** A box of another user that does not run, on a file system and in a mount namespace of its own. */
export interface StoppedBox {
  directory: string
  data: string
  keys: string
  /** A backup of it as it was in the beginning. */
  backup: string
  /** A copy of its master key. */
  key: string
  env: Record<string, string>
  dns: DnsStub
  httpPort: number
  command(as: Asker, ...words: string[]): Promise<{ code: number | null; output: string; errors: string }>
  doctor(as: Asker): Promise<Report>
  /** Runs lines of shell as root beside the box; `pillarbox` is the program. Throws when they fail. */
  shell(text: string): Promise<void>
  /** A file beside it. */
  read(name: string): Promise<Buffer>
  /** Makes it what it was in the beginning. */
  reset(): Promise<void>
  close(): Promise<void>
}

/** Makes one; only root can. */
export async function stoppedBox(settings: Record<string, string> = {}): Promise<StoppedBox> {
  const directory = mkdtempSync(join(tmpdir(), 'pillarbox-stopped-'))
  chmodSync(directory, 0o755)
  // a namespace lives as long as a process is in it
  const holder = spawn('unshare', ['--mount', '--propagation', 'private', 'sh', '-c', 'echo in; exec sleep 3600'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await once(holder.stdout, 'data')
  const dns = await DnsStub.start()
  const [home, data, keys] = [join(directory, 'home'), join(directory, 'home', 'data'), join(directory, 'home', 'data-keys')]
  mkdirSync(home)
  const bin = join(directory, 'bin')
  mkdirSync(bin)
  // what Node.js compiled is kept for each user apart, and this one may not write beside the packages
  const compiled = join(directory, 'compiled')
  mkdirSync(compiled)
  chownSync(compiled, owner.uid, owner.gid)
  writeFileSync(join(bin, 'pillarbox'), `#!/bin/sh\nexec '${process.execPath}' '${program}' "$@"\n`, { mode: 0o755 })
  const httpPort = await freePort()
  const env: Record<string, string> = {
    PILLARBOX_DATA_DIR: data,
    PILLARBOX_HTTP__LISTEN: `127.0.0.1:${httpPort}`,
    PILLARBOX_SMTP__LISTEN: `127.0.0.1:${await freePort()}`,
    PILLARBOX_HOSTNAME: 'mx.box.test',
    PILLARBOX_MAIL__DOMAIN: 'box.test',
    PILLARBOX_DOCTOR__ADDRESSES: '192.0.2.25',
    PILLARBOX_DOCTOR__BLOCKLISTS: '',
    PILLARBOX_OUTBOUND__MODE: 'none',
    PILLARBOX_MIN_FREE: '4 MiB',
    PILLARBOX_DNS__SERVERS: dns.servers.join(','),
    PATH: `${bin}:${process.env['PATH']}`,
    ...settings,
  }
  dns.a('mx.box.test', '192.0.2.25')
  const enter = ['--target', String(holder.pid), '--mount', '--wd=/']
  const inside = (...words: string[]): ReturnType<typeof run> => run('nsenter', [...enter, ...words], { env })
  await succeed('nsenter', [...enter, 'mount', '-t', 'tmpfs', '-o', 'size=64m,mode=755', 'tmpfs', home])
  const made = join(directory, 'made')
  const config = await loadConfig({ env: { ...env, PILLARBOX_DATA_DIR: join(made, 'data') }, cwd: directory })
  mkdirSync(made)
  // its domain is known once it has run
  const app = await App.open(config, createLog('silent'))
  await app.start()
  await app.stop()
  const key = join(directory, 'copy-of-master.key')
  cpSync(join(made, 'data-keys', 'master.key'), key)
  const backup = join(directory, 'backup.tar')
  const box: StoppedBox = {
    directory,
    data,
    keys,
    backup,
    key,
    env,
    dns,
    httpPort,
    async command(as, ...words) {
      const { uid, gid } = owner
      const user =
        as === 'root'
          ? []
          : ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups', 'env', `NODE_COMPILE_CACHE=${compiled}`]
      const { code, output, errors } = await inside(...user, 'pillarbox', ...words)
      return { code, output: output.toString(), errors }
    },
    async doctor(as) {
      const { code, output, errors } = await box.command(as, 'doctor', '--json')
      if (output === '') throw new Error(`The doctor said nothing (${code}): ${errors}`)
      const { lines } = JSON.parse(output) as { lines: Line[] }
      return {
        code,
        lines,
        line(name, subject = '') {
          const found = lines.find((line) => line.name === name && line.subject.endsWith(subject))
          if (!found) throw new Error(`No line ${name} ${subject} among:\n${JSON.stringify(lines, null, 1)}`)
          return found
        },
      }
    },
    async shell(text) {
      const { code, output, errors } = await inside('sh', '-ec', text)
      if (code !== 0) throw new Error(`${text}\nended with ${code}: ${errors}${output.toString()}`)
    },
    read: (name) => readFile(join(directory, name)),
    reset: () =>
      box.shell(
        `mount -o remount,rw ${home} && find ${home} -mindepth 1 -delete && cp -a ${made}/. ${home}/ && chown -R ${owner.uid}:${owner.gid} ${data} ${keys}`,
      ),
    async close() {
      const gone = once(holder, 'close')
      holder.kill('SIGKILL')
      await gone
      await dns.close()
      rmSync(directory, { recursive: true, force: true })
    },
  }
  await box.reset()
  await box.shell(`pillarbox backup ${backup}`)
  return box
}

/** The lines of a remedy that are commands, with what stands for the operator's own files put in. */
export function commandsOf(fix: string, given: Record<string, string> = {}): string {
  const commands = fix
    .split('\n')
    .flatMap((line) => /(?:^|: )((?:apt-get|chmod|chown|cp|echo|install|mount|mv|pillarbox) .*)$/.exec(line)?.[1] ?? [])
  return Object.entries(given).reduce((text, [word, value]) => text.replaceAll(word, value), commands[0] ?? '')
}
