import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { peer } from './peer.ts'

/** Whatever it wants from others than this machine goes to a port where nobody listens. */
const settings = {
  'network.proxy.type': 1,
  'network.proxy.http': '127.0.0.1',
  'network.proxy.http_port': 9,
  'network.proxy.ssl': '127.0.0.1',
  'network.proxy.ssl_port': 9,
  'network.proxy.no_proxies_on': 'localhost, 127.0.0.1',
  'browser.shell.checkDefaultBrowser': false,
  'datareporting.policy.dataSubmissionEnabled': false,
  'ui.prefersReducedMotion': 1,
}

type Parameters = Record<string, unknown>

interface Message {
  id?: number
  method?: string
  params?: Parameters
  result?: Parameters
  error?: string
  message?: string
}

/** Milliseconds for which something is waited for. */
const patience = 60_000

/** Debian's Firefox ESR with one tab, driven by WebDriver BiDi, W3C's protocol, which Firefox speaks itself. */
export class Firefox {
  /** What scripts complained of, and what was asked of anybody but `origin`. */
  readonly troubles: string[] = []
  readonly #child: ChildProcess
  readonly #profile: string
  readonly #socket: WebSocket
  readonly #pending = new Map<number, (message: Message) => void>()
  #sent = 0
  #tab = ''
  #origin = ''

  private constructor(child: ChildProcess, profile: string, socket: WebSocket) {
    this.#child = child
    this.#profile = profile
    this.#socket = socket
    socket.addEventListener('message', ({ data }) => this.#receive(JSON.parse(String(data)) as Message))
  }

  /** Undefined, outside of CI, where it is not installed. */
  static async start(): Promise<Firefox | undefined> {
    const program = peer('firefox-esr')
    if (program === undefined) return undefined
    const profile = mkdtempSync(join(tmpdir(), 'pillarbox-firefox-'))
    const lines = Object.entries(settings).map(([name, value]) => `user_pref("${name}", ${JSON.stringify(value)});\n`)
    writeFileSync(join(profile, 'user.js'), lines.join(''))
    const words = ['--headless', '--no-remote', '--profile', profile, '--remote-debugging-port', '0']
    const child = spawn(program, words, { stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, HOME: profile } })
    let said = ''
    const address = new Promise<string>((resolve, reject) => {
      child.stderr.setEncoding('utf8').on('data', (text: string) => {
        said += text
        const found = /WebDriver BiDi listening on (ws:\/\/\S+)/.exec(said)
        if (found) resolve(found[1]!)
      })
      child.once('close', () => reject(new Error(`Firefox ended: ${said}`)))
    })
    const socket = new WebSocket(`${await address}/session`)
    await once(socket, 'open')
    const firefox = new Firefox(child, profile, socket)
    await firefox.#send('session.new', { capabilities: {} })
    await firefox.#send('session.subscribe', { events: ['log.entryAdded', 'network.beforeRequestSent'] })
    const { contexts } = (await firefox.#send('browsingContext.getTree', {})) as { contexts: { context: string }[] }
    firefox.#tab = contexts[0]!.context
    return firefox
  }

  async stop(): Promise<void> {
    this.#socket.close()
    this.#child.kill('SIGKILL')
    await once(this.#child, 'close')
    rmSync(this.#profile, { recursive: true, force: true, maxRetries: 5 })
  }

  async resize(width: number, height: number): Promise<void> {
    await this.#send('browsingContext.setViewport', { context: this.#tab, viewport: { width, height } })
  }

  async open(url: string): Promise<void> {
    const { origin } = new URL(url)
    // the page of another box may still ask that box
    if (origin !== this.#origin) await this.#leave()
    this.#origin = origin
    const navigate = (): Promise<unknown> => this.#send('browsingContext.navigate', { context: this.#tab, url, wait: 'complete' })
    // seen under load: Firefox ends a navigation that begins while parts of the page before are being loaded
    await navigate().catch((error: unknown) => {
      if (!String(error).includes('NS_BINDING_ABORTED')) throw error
      return navigate()
    })
  }

  async #leave(): Promise<void> {
    await this.#send('browsingContext.navigate', { context: this.#tab, url: 'about:blank', wait: 'complete' })
    this.#origin = ''
    this.troubles.length = 0
  }

  /** The value of an expression in the page. */
  async evaluate(expression: string): Promise<unknown> {
    const given = { expression, target: { context: this.#tab }, awaitPromise: true, userActivation: true }
    const { type, result, exceptionDetails } = (await this.#send('script.evaluate', given)) as {
      type: string
      result?: { value?: unknown }
      exceptionDetails?: { text: string }
    }
    if (type !== 'success') throw new Error(exceptionDetails?.text)
    return result?.value
  }

  /** Waits until an expression in the page is true. */
  async until(expression: string): Promise<void> {
    for (const end = performance.now() + patience; !(await this.evaluate(`Boolean(${expression})`)); await sleep(50))
      if (performance.now() > end)
        throw new Error(`Not true: ${expression}\n${String(await this.evaluate('document.body.innerText'))}`)
  }

  /** Waits until the page shows a text. */
  async shows(text: string): Promise<void> {
    await this.until(`document.body.innerText.includes(${JSON.stringify(text)})`)
  }

  /** Presses a button or follows a link by its name, with the mouse. */
  async click(name: string): Promise<void> {
    const named = `[...document.querySelectorAll('button, a')].findLast((e) => (e.getAttribute('aria-label') ?? e.textContent).trim() === ${JSON.stringify(name)} && e.checkVisibility())`
    await this.until(named)
    const place = `(() => { const e = ${named}; e.scrollIntoView({ block: 'center' }); const { x, y, width, height } = e.getBoundingClientRect(); return JSON.stringify([Math.round(x + width / 2), Math.round(y + height / 2)]) })()`
    const [x, y] = JSON.parse(String(await this.evaluate(place))) as [number, number]
    const actions = [
      { type: 'pointerMove', x, y },
      { type: 'pointerDown', button: 0 },
      { type: 'pointerUp', button: 0 },
    ]
    await this.#act({ type: 'pointer', id: 'mouse', actions })
  }

  /** Types into the field with this label. */
  async fill(label: string, text: string): Promise<void> {
    const field = `[...document.querySelectorAll('label')].findLast((e) => e.textContent.trim() === ${JSON.stringify(label)})?.control`
    await this.until(field)
    await this.evaluate(`${field}.focus()`)
    await this.type(text)
  }

  /** Presses these keys, one after the other. */
  async type(text: string): Promise<void> {
    const actions = Array.from(text, (value) => [
      { type: 'keyDown', value },
      { type: 'keyUp', value },
    ]).flat()
    await this.#act({ type: 'key', id: 'keyboard', actions })
  }

  async #act(source: Parameters): Promise<void> {
    await this.#send('input.performActions', { context: this.#tab, actions: [source] })
  }

  async #send(method: string, params: Parameters): Promise<Parameters> {
    const id = (this.#sent += 1)
    const { promise, resolve } = Promise.withResolvers<Message>()
    this.#pending.set(id, resolve)
    this.#socket.send(JSON.stringify({ id, method, params }))
    const { result, error, message } = await promise
    if (error !== undefined) throw new Error(`${method}: ${error}: ${message}`)
    return result ?? {}
  }

  #receive(message: Message): void {
    if (message.id !== undefined) {
      this.#pending.get(message.id)?.(message)
      this.#pending.delete(message.id)
    }
    const { method, params = {} } = message
    if (method === 'log.entryAdded' && params['level'] === 'error') this.troubles.push(String(params['text']))
    if (method !== 'network.beforeRequestSent') return
    const { url } = params['request'] as { url: string }
    if (this.#origin !== '' && !url.startsWith(`${this.#origin}/`) && !url.startsWith('data:')) this.troubles.push(url)
  }
}
