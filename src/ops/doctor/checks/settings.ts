import { about, newCheck, type Check } from '../check.ts'
import type { Line } from '../model.ts'
import type { ListenerEndpoint } from './ports.ts'

interface Deps {
  /** The domain of new addresses. */
  domain: string
  hostname: string
  publicUrl: () => string
  wanted: readonly ListenerEndpoint[]
  proxies: number
  /** How mail leaves: directly, by a relay, or not at all. */
  mode: 'direct' | 'relay' | 'none'
}

const pretended = /(?:^|\.)(?:test|example|invalid|localhost|local)$/

/** Checks for settings that are valid but probably unintended. */
export function settings(deps: Deps): Check {
  return newCheck('config', 'usual', async () => {
    const lines = [named(deps), reached(deps), inTheClear(deps), received(deps)].flat()
    return lines.length > 0 ? lines : [about('config', 'settings').pass('They can be used as they are.')]
  })
}

function named({ domain, hostname }: Deps): Line[] {
  if (pretended.test(domain)) {
    const line = about('config', 'mail.domain')
    return [
      line.warn(
        `${domain} is a name for testing: other servers cannot send mail to it.`,
        'Set mail.domain to a domain of yours.',
      ),
    ]
  }
  if (hostname.includes('.') && !pretended.test(hostname)) return []
  const fix = 'Set hostname to a name of this machine in the DNS, such as mx.example.com.'
  return [about('config', 'hostname').warn(`${hostname} is no name that other mail servers can look up.`, fix)]
}

function reached({ publicUrl, wanted, proxies }: Deps): Line[] {
  const url = new URL(publicUrl())
  if (isLoopback(url.hostname.replace(/^\[|\]$/g, ''))) return []
  const line = about('config', 'public_url')
  if (url.protocol === 'http:') {
    return [
      line.warn(
        `By ${url.origin} API keys travel in the clear.`,
        'Set http.tls or put a proxy with TLS in front, and public_url to https.',
      ),
    ]
  }
  if (wanted.some(({ speech }) => speech === 'https') || proxies > 0) return []
  const message = `${url.origin} is https, but the box serves none and trusts no proxy: all callers count as one client.`
  return [line.warn(message, "Set http.trusted_proxies to the proxy's address, such as [127.0.0.1/32], or set http.tls.")]
}

function inTheClear({ wanted, proxies }: Deps): Line[] {
  const open = wanted.filter(({ speech, host }) => speech === 'http' && !isLoopback(host))
  // a proxy on another machine, or outside of a container, must be able to connect
  if (proxies > 0) return []
  return open.map(({ host, port }) =>
    about('config', 'http.listen').warn(
      `The API is served in the clear at ${host}:${port}, which is not only for this machine.`,
      `Set http.listen to 127.0.0.1:${port}, and serve others by http.tls or a proxy (http.trusted_proxies).`,
    ),
  )
}

function received({ domain, wanted }: Deps): Line[] {
  const listeners = wanted.filter(({ speech }) => speech === 'smtp')
  if (pretended.test(domain) || listeners.some(({ host }) => !isLoopback(host))) return []
  const message = 'Mail is received from this machine only.'
  return [
    about('config', 'smtp.listen').warn(
      message,
      'Set smtp.listen to 0.0.0.0:25 (and [::]:25), unless something on this machine passes mail on.',
    ),
  ]
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host.startsWith('127.')
}
