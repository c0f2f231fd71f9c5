import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { formatEndpoint } from '../../../core/domain-names.ts'
import { serviceUnit } from '../../../core/service-unit.ts'
import { about, newCheck, type Check, reasonOf } from '../check.ts'
import type { DoctorSettings, ListenerEndpoint, OuterContext } from '../context.ts'
import { answerOf, type Endpoint, fetchCertificate, fetchCertificateAfterStartTls, type Place, within } from '../conversation.ts'
import type { Line } from '../model.ts'

/** Checks that every listener answers; of a stopped box, that its ports are available. */
export function ports({ settings, present }: OuterContext): Check {
  return newCheck('ports', 'often', async () => {
    const listeners = present()
    if (listeners) return Promise.all(listeners.map((listener) => answers(listener, settings)))
    const stopped = about('ports', 'box').warn('The box is not running: only its files were checked.', start)
    return [stopped, ...(await Promise.all(settings.listeners.map((listener) => free(listener, settings.data_dir))))]
  })
}

const start = 'systemctl start pillarbox, or: pillarbox serve'

async function answers(listener: ListenerEndpoint, settings: DoctorSettings): Promise<Line> {
  const { hostname } = settings
  const line = about('ports', `${listener.protocol} ${formatEndpoint(listener)}`)
  const fix = `Check the log of the box; show the listening program: ss -ltnp 'sport = :${listener.port}'`
  try {
    const said = await greeting(listener.protocol, placeOf(listener, settings), hostname)
    if (listener.protocol.startsWith('http')) {
      return / 200 /.test(said) ? line.pass('It answers.') : line.fail(`It answers “${said}”.`, fix)
    }
    if (said.startsWith(`220 ${hostname} `)) return line.pass('It answers.')
    return line.fail(`It greets with “${said}”, not as ${hostname}: another program may be using the port.`, fix)
  } catch (error) {
    return line.fail(`It does not answer: ${reasonOf(error)}.`, fix)
  }
}

async function greeting(protocol: ListenerEndpoint['protocol'], place: Place, hostname: string): Promise<string> {
  const question = `GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n`
  switch (protocol) {
    case 'http':
      return answerOf(place, { question })
    case 'https':
      return answerOf(place, { question, tls: hostname })
    case 'submissions':
      return answerOf(place, { tls: hostname })
    default:
      return answerOf(place)
  }
}

async function free({ host, port, protocol }: ListenerEndpoint, dataDirectory: string): Promise<Line> {
  const line = about('ports', `${protocol} ${formatEndpoint({ host, port })}`)
  const server = createServer()
  try {
    const failed = once(server, 'error').then(([error]) => {
      throw error as Error
    })
    // without a host Node binds to all addresses, also without IPv6
    server.listen({ host: host === '::' ? undefined : host, port, exclusive: true })
    await Promise.race([once(server, 'listening'), failed])
    return line.pass('The port is free.')
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? ''
    const taken = (): Line =>
      line.fail('Another program uses the port.', `Stop it, or set another port; show it: ss -ltnp 'sport = :${port}'`)
    if (code === 'EADDRINUSE') return taken()
    if (code === 'EACCES') {
      if (await isAnswered(host, port)) return taken()
      const unit = serviceUnit(dataDirectory)
      if (unit?.lowPorts) return line.pass(`Nothing answers there, and the service can open it (${unit.files[0]}).`)
      const fix = `echo ${port} > /proc/sys/net/ipv4/ip_unprivileged_port_start`
      const service = 'as a service: AmbientCapabilities=CAP_NET_BIND_SERVICE in its unit'
      return line.fail('This user may not open a port below 1024.', `${fix}\nOr, ${service}.`)
    }
    if (code === 'EADDRNOTAVAIL')
      return line.fail('This machine has no such address.', `Set a listener at one of: ip -brief address`)
    return line.fail(`The port cannot be opened: ${reasonOf(error)}.`, 'Set another port.')
  } finally {
    server.close()
  }
}

/** True if a program listens at the port, where this user may not bind to it. */
async function isAnswered(host: string, port: number): Promise<boolean> {
  const hosts = host === '::' ? ['::1', '127.0.0.1'] : [within({ host, port }).host]
  const found = await Promise.all(
    hosts.map(async (one) => {
      const socket = connect({ host: one, port, timeout: 2000 })
      socket.on('timeout', () => socket.destroy(new Error('no answer')))
      try {
        await once(socket, 'connect')
        return true
      } catch {
        return false
      } finally {
        socket.destroy()
      }
    }),
  )
  return found.includes(true)
}

/** The certificate of a listener for a name; undefined without TLS. */
export function certificateAt(
  listener: ListenerEndpoint,
  name: string,
  settings: Pick<DoctorSettings, 'proxy_protocol'>,
): ReturnType<typeof fetchCertificate> | undefined {
  if (listener.protocol === 'http') return undefined
  const place = placeOf(listener, settings)
  return listener.protocol === 'smtp' || listener.protocol === 'submission'
    ? fetchCertificateAfterStartTls(place, name)
    : fetchCertificate(place, name)
}

function placeOf({ protocol, host, port }: ListenerEndpoint, settings: Pick<DoctorSettings, 'proxy_protocol'>): Place {
  const { http, smtp } = settings.proxy_protocol
  return { host, port, proxies: protocol.startsWith('http') ? http : smtp }
}

export function presentListeners(
  { plain, tls }: { plain?: AddressInfo; tls?: AddressInfo },
  { addresses, submissionAddresses }: { addresses: Endpoint[]; submissionAddresses: { starttls: Endpoint[]; tls: Endpoint[] } },
): ListenerEndpoint[] {
  return [
    ...listenersOf('http', placesOf(plain)),
    ...listenersOf('https', placesOf(tls)),
    ...listenersOf('smtp', addresses),
    ...listenersOf('submission', submissionAddresses.starttls),
    ...listenersOf('submissions', submissionAddresses.tls),
  ]
}

/** The configured listeners; one without a host is on every address. */
export function listenersOf(
  protocol: ListenerEndpoint['protocol'],
  places: readonly { host: string | undefined; port: number }[],
): ListenerEndpoint[] {
  return places.map(({ host, port }) => ({ protocol, host: host ?? '::', port }))
}

function placesOf(bound: AddressInfo | undefined): Endpoint[] {
  return bound ? [{ host: bound.address, port: bound.port }] : []
}
