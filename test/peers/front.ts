import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import type { IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import { certificate } from '../../src/certificates/self-signed.ts'
import { freePort } from '../support/free-port.ts'

/** A web server in front of a box: where it listens in the clear and under TLS, and the root of its certificate. */
export interface Front {
  http: number
  https: number
  ca: string
  /** Where a program that obtains certificates for it puts its answers to the CA; undefined where it obtains them itself. */
  webroot?: string
}

export interface Asked {
  status: number
  headers: IncomingMessage['headers']
  body: ReturnType<typeof JSON.parse>
}

const config = new URL('../../config/', import.meta.url).pathname

/** nginx, by the example that we ship; only ports and paths are others. */
export async function nginx(program: string, box: number): Promise<Front> {
  const { folder, ports, pair } = await place()
  for (const name of ['body', 'proxy', 'fastcgi', 'uwsgi', 'scgi', 'www']) mkdirSync(join(folder, name))
  const example = changed(readFileSync(join(config, 'nginx.conf.example'), 'utf8'), [
    [/listen 80 default_server;/, `listen 127.0.0.1:${ports.http} default_server;`],
    [/listen 443 ssl http2;/, `listen 127.0.0.1:${ports.https} ssl http2;`],
    [/listen \[::\]:80 default_server;/, ''],
    [/listen \[::\]:443 ssl http2;/, ''],
    [/server 127\.0\.0\.1:8080;/, `server 127.0.0.1:${box};`],
    [/root \/var\/www\/html;/, `root ${join(folder, 'www')};`],
    [/\/etc\/letsencrypt\/live\/box\.example\.com\/fullchain\.pem/, join(folder, 'cert.pem')],
    [/\/etc\/letsencrypt\/live\/box\.example\.com\/privkey\.pem/, join(folder, 'key.pem')],
  ])
  writeFileSync(join(folder, 'pillarbox.conf'), example)
  writeFileSync(
    join(folder, 'nginx.conf'),
    `${process.getuid?.() === 0 ? 'user root;' : ''}
daemon off;
master_process off;
pid ${folder}/pid;
error_log stderr;
events {}
http {
  access_log off;
  ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/${name.replace('client_', '')};`).join(' ')}
  include ${folder}/pillarbox.conf;
}
`,
  )
  await run(program, ['-p', folder, '-e', 'stderr', '-c', join(folder, 'nginx.conf')], ports.https)
  return { ...ports, ca: pair.cert, webroot: join(folder, 'www') }
}

/** Caddy, by the example that we ship; only ports and certificates are others. */
export async function caddy(program: string, box: number): Promise<Front> {
  const { folder, ports, pair } = await place()
  const example = changed(readFileSync(join(config, 'Caddyfile.example'), 'utf8'), [
    [/(?=\treverse_proxy 127)/, `\ttls ${join(folder, 'cert.pem')} ${join(folder, 'key.pem')}\n`],
    [/reverse_proxy 127\.0\.0\.1:8080/g, `reverse_proxy 127.0.0.1:${box}`],
  ])
  const options = ['admin off', 'skip_install_trust', 'default_bind 127.0.0.1']
  const global = [...options, `storage file_system ${folder}`, `http_port ${ports.http}`, `https_port ${ports.https}`]
  writeFileSync(join(folder, 'Caddyfile'), `{\n\t${global.join('\n\t')}\n}\n\n${example}`)
  await run(program, ['run', '--adapter', 'caddyfile', '--config', join(folder, 'Caddyfile')], ports.https, {
    HOME: folder,
    XDG_CONFIG_HOME: folder,
  })
  return { ...ports, ca: pair.cert }
}

/** A call through the front, by name and from an address of loopback. */
export async function through(
  front: Front,
  path: string,
  options: {
    host?: string
    from?: string
    method?: string
    headers?: Record<string, string>
    body?: string | Buffer
    /** Of the body, in octets: what `body` lacks of it is never sent. */
    contentLength?: number
  } = {},
): Promise<Asked> {
  const { host = 'box.example.com', from = '127.0.0.1', method = 'GET', headers = {}, body } = options
  const contentLength = options.contentLength ?? (body === undefined ? undefined : Buffer.byteLength(body))
  const call = request({
    host: '127.0.0.1',
    port: front.https,
    servername: host,
    ca: front.ca,
    agent: false,
    localAddress: from,
    path,
    method,
    headers: {
      Host: host,
      ...(contentLength === undefined ? {} : { 'Content-Type': 'application/json', 'Content-Length': contentLength }),
      ...headers,
    },
  })
  // one that has answered need not read the rest
  call.on('error', () => undefined)
  if (options.contentLength === undefined) call.end(body)
  else call.write(body)
  const [answer] = (await once(call, 'response')) as [IncomingMessage]
  const said = await text(answer)
  call.destroy()
  const isJson = answer.headers['content-type']?.includes('json') ?? false
  return { status: answer.statusCode!, headers: answer.headers, body: isJson ? JSON.parse(said) : said }
}

/** A WebSocket through the front. */
export async function socketThrough(front: Front, path: string, host = 'box.example.com'): Promise<WebSocket> {
  const socket = new WebSocket(`wss://127.0.0.1:${front.https}${path}`, {
    agent: new Agent({ ca: front.ca, servername: host }),
    headers: { Host: host },
  })
  onTestFinished(() => socket.terminate())
  await once(socket, 'open')
  return socket
}

interface Place {
  folder: string
  ports: { http: number; https: number }
  pair: { cert: string }
}

async function place(): Promise<Place> {
  const folder = mkdtempSync(join(tmpdir(), 'pillarbox-front-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const pair = await wildcard(folder)
  return { folder, ports: { http: await freePort(), https: await freePort() }, pair }
}

/** It bears box.example.com and mta-sts.example.com. */
async function wildcard(folder: string): Promise<{ cert: string }> {
  return certificate(folder, '*.example.com')
}

/** Each replacement must hit something: an example that was changed is to be tested as it is. */
function changed(example: string, replacements: [RegExp, string][]): string {
  return replacements.reduce((before, [pattern, replacement]) => {
    if (before.search(pattern) < 0) throw new Error(`The example has no ${String(pattern)} any more.`)
    return before.replace(pattern, () => replacement)
  }, example)
}

/** Resolves once it listens. Ended when the test ends, or the test runner is killed. */
async function run(program: string, parameters: string[], port: number, env: Record<string, string> = {}): Promise<void> {
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', program, ...parameters], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env['PATH'] ?? '', ...env },
  })
  let said = ''
  for (const output of [child.stdout, child.stderr]) output.on('data', (chunk: Buffer) => (said += chunk.toString()))
  const ended = once(child, 'close')
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await ended
  })
  for (let tries = 0; tries < 300; tries++) {
    if (child.exitCode !== null) break
    if (await isOpen(port)) return
    await sleep(100)
  }
  throw new Error(`${program} did not start:\n${said}`)
}

async function isOpen(port: number): Promise<boolean> {
  const socket = connect({ host: '127.0.0.1', port })
  const open = await Promise.race([once(socket, 'connect').then(() => true), once(socket, 'error').then(() => false)]).catch(
    () => false,
  )
  socket.destroy()
  return open
}
