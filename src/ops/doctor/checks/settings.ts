import { about, newCheck, type Check } from '../check.ts'
import type { Line } from '../model.ts'
import type { OuterContext } from '../context.ts'

const pretended = /(?:^|\.)(?:test|example|invalid|localhost|local)$/

/** Checks for settings that are valid but probably unintended. */
export function unusualSettings(context: OuterContext): Check {
  return newCheck('config', 'usual', async () => {
    const lines = [named(context), reached(context), inTheClear(context), received(context)].flat()
    return lines.length > 0 ? lines : [about('config', 'settings').pass('The settings are usable.')]
  })
}

function named({ settings: { domain, hostname } }: OuterContext): Line[] {
  if (pretended.test(domain)) {
    const line = about('config', 'mail.domain')
    return [
      line.warn(`${domain} is reserved for testing: other servers cannot send mail to it.`, 'Set mail.domain to your domain.'),
    ]
  }
  if (hostname.includes('.') && !pretended.test(hostname)) return []
  const fix = 'Set hostname to a name of this machine in the DNS, such as mx.example.com.'
  return [about('config', 'hostname').warn(`${hostname} is not a name that other mail servers can look up.`, fix)]
}

function reached({ publicUrl, settings: { listeners, proxies } }: OuterContext): Line[] {
  const url = new URL(publicUrl())
  if (isLoopback(url.hostname.replace(/^\[|\]$/g, ''))) return []
  const line = about('config', 'public_url')
  if (url.protocol === 'http:') {
    return [
      line.warn(
        `At ${url.origin} API keys are transmitted without encryption.`,
        'Set http.tls or put a reverse proxy with TLS in front, and public_url to https.',
      ),
    ]
  }
  if (listeners.some(({ protocol }) => protocol === 'https') || proxies > 0) return []
  const message = `${url.origin} is https, but the box has no TLS listener and trusts no reverse proxy: all callers count as one client.`
  return [line.warn(message, "Set http.trusted_proxies to the proxy's address, such as [127.0.0.1/32], or set http.tls.")]
}

function inTheClear({ settings: { listeners, proxies } }: OuterContext): Line[] {
  const open = listeners.filter(({ protocol, host }) => protocol === 'http' && !isLoopback(host))
  // a proxy on another machine, or outside of a container, must be able to connect
  if (proxies > 0) return []
  return open.map(({ host, port }) =>
    about('config', 'http.listen').warn(
      `The API is served without TLS at ${host}:${port}, which other machines can reach.`,
      `Set http.listen to 127.0.0.1:${port}, and serve other machines through http.tls or a reverse proxy (http.trusted_proxies).`,
    ),
  )
}

function received({ settings: { domain, listeners: all } }: OuterContext): Line[] {
  const listeners = all.filter(({ protocol }) => protocol === 'smtp')
  if (pretended.test(domain) || listeners.some(({ host }) => !isLoopback(host))) return []
  const message = 'Mail is received only from this machine.'
  return [
    about('config', 'smtp.listen').warn(
      message,
      'Set smtp.listen to 0.0.0.0:25 (and [::]:25), unless another mail server on this machine forwards mail to the box.',
    ),
  ]
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host.startsWith('127.')
}
