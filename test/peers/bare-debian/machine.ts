import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Browser, chromium } from 'playwright-core'
import { absent } from '../../support/peer.ts'
import { type Ended, limit, long } from './programs.ts'
import { cacheInside, environment, type System } from './system.ts'

/** A machine ends with the test that started it, however that ends. */
const last = ['--pdeathsig', 'KILL']

interface Who {
  user?: string
  env?: Record<string, string>
}

/** A bare Debian that runs, with a network of its own in which there is nobody else. */
export class Machine {
  readonly #host: ChildProcess
  /** Its first process, by our numbers. */
  readonly #first: number
  readonly #environment: Record<string, string>

  private constructor(host: ChildProcess, first: number, env: Record<string, string>) {
    this.#host = host
    this.#first = first
    this.#environment = env
  }

  /** With systemd as its first process. Undefined, with the reason on standard error, where this machine lets none be booted inside it. */
  static async boot(system: System): Promise<Machine | undefined> {
    const options = `-q -D '${system.mounted}' --register=no --keep-unit --private-network --console=pipe`
    const mounted = ['--mount', 'sh', '-c']
    const trial = await long('unshare', [...mounted, `${system.mounting} && systemd-nspawn ${options} true`])
    if (trial.code !== 0) {
      absent('systemd-nspawn', `no system can be booted here (${trial.text.trim()})`)
      return undefined
    }
    const bind = `--bind='${join(system.mounted, cacheInside)}:${cacheInside}'`
    const boot = `${system.mounting} && exec systemd-nspawn ${options} ${bind} -b`
    const env = await environment(system, 'offline')
    const host = spawn('setpriv', [...last, 'unshare', ...mounted, boot], { stdio: 'ignore' })
    const machine = await Machine.#inside(host, env)
    // until systemd takes orders; then, until all that it starts has started
    for (let tries = 0; ; tries++) {
      const { code, text } = await machine.run('systemctl is-system-running --wait')
      if (code === 0 || text.includes('degraded')) return machine
      if (tries === 300) throw new Error(`systemd does not come up: ${text}`)
      await sleep(100)
    }
  }

  /** Without an init system. Undefined where no namespaces can be made. */
  static async plain(system: System): Promise<Machine | undefined> {
    const namespaces = ['--mount', '--pid', '--net', '--fork', '--kill-child']
    const trial = await long('unshare', [...namespaces, 'true'])
    if (trial.code !== 0) {
      absent('unshare', `no namespaces can be made here (${trial.text.trim()})`)
      return undefined
    }
    const at = system.mounted
    const steps = [
      'set -e',
      'ip link set lo up',
      system.mounting,
      `mount -t proc proc '${at}/proc'`,
      `mount --rbind /dev '${at}/dev'`,
      `exec chroot '${at}' sleep infinity`,
    ]
    const env = await environment(system, 'offline')
    return Machine.#inside(
      spawn('setpriv', [...last, 'unshare', ...namespaces, 'sh', '-c', steps.join('\n')], { stdio: 'ignore' }),
      env,
    )
  }

  static async #inside(host: ChildProcess, env: Record<string, string>): Promise<Machine> {
    for (let tries = 0; tries < 600 && host.exitCode === null; tries++) {
      const first = children(host.pid!).find((pid) => isFirst(pid))
      if (first !== undefined) return new Machine(host, first, env)
      await sleep(50)
    }
    host.kill('SIGKILL')
    throw new Error(`${host.spawnfile} did not start a system.`)
  }

  /** The words that run a program of the system in it. */
  #words(user: string | undefined, program: string[]): string[] {
    const enter = [
      '-t',
      `${this.#first}`,
      '--mount',
      '--uts',
      '--ipc',
      '--net',
      '--pid',
      '--root',
      `--wd=/proc/${this.#first}/root`,
    ]
    return [...enter, '--', ...(user === undefined ? [] : ['runuser', '-u', user, '--']), ...program]
  }

  #env({ user, env }: Who): Record<string, string> {
    return { ...this.#environment, ...(user === undefined ? {} : { HOME: `/home/${user}` }), ...env }
  }

  /** Has a shell run these lines, as they would be pasted; the first that fails ends it. */
  run(lines: string | readonly string[], who: Who = {}): Promise<Ended> {
    const script = typeof lines === 'string' ? lines : lines.join('\n')
    return long('nsenter', this.#words(who.user, ['/bin/sh', '-ec', `cd\n${script}`]), this.#env(who))
  }

  /** As `run`, for what must succeed: answers what it wrote. */
  async must(lines: string | readonly string[], who: Who = {}): Promise<string> {
    const { code, text } = await this.run(lines, who)
    if (code !== 0) {
      const { text: journal } = await this.run('journalctl --no-pager -u "pillarbox*" -o cat -n 40 2>/dev/null || true')
      throw new Error(`${String(lines)}\nended with ${code}:\n${text.slice(-4000)}\n${journal}`)
    }
    return text
  }

  /** Starts what goes on running, in its own process group; what it writes is taken up by the caller. */
  start(line: string, who: Who = {}): ChildProcess {
    return spawn('nsenter', this.#words(who.user, ['/bin/sh', '-ec', `cd\n${line}`]), {
      env: this.#env(who),
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  }

  /** Runs a program of this machine in the network of that one. */
  reach(program: string, parameters: string[]): Promise<Ended> {
    return long('nsenter', ['-t', `${this.#first}`, '--net', '--', program, ...parameters])
  }

  /** A browser of this machine, in the network of that one. */
  async browser(executable: string): Promise<Browser> {
    const place = mkdtempSync(join(tmpdir(), 'pillarbox-browser-'))
    const wrapper = join(place, 'chromium')
    writeFileSync(wrapper, `#!/bin/sh\nexec nsenter -t ${this.#first} --net -- ${executable} "$@"\n`)
    chmodSync(wrapper, 0o755)
    try {
      return await chromium.launch({
        executablePath: wrapper,
        args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
      })
    } finally {
      rmSync(place, { recursive: true })
    }
  }

  read(path: string): string {
    return readFileSync(`/proc/${this.#first}/root${path}`, 'utf8')
  }

  /** Ends it and everything in it. */
  async end(): Promise<void> {
    const ended = this.#host.exitCode === null ? once(this.#host, 'exit') : undefined
    // the first process takes all others with it, and the mounts go with the last
    process.kill(this.#first, 'SIGKILL')
    const late = setTimeout(() => this.#host.kill('SIGKILL'), limit / 20)
    await ended
    clearTimeout(late)
  }
}

function children(pid: number): number[] {
  const direct = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
  return direct.flatMap((child) => {
    try {
      return [child, ...children(child)]
    } catch {
      // it has ended meanwhile
      return []
    }
  })
}

/** Whether it is the first process of a namespace, with the program that is to run there, not what makes it ready. */
function isFirst(pid: number): boolean {
  try {
    const [, inner] = /^NSpid:\t\d+\t(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    return inner === '1' && /^(?:systemd|sleep)$/m.test(readFileSync(`/proc/${pid}/comm`, 'utf8'))
  } catch {
    return false
  }
}
