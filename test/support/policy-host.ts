import { once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { connect } from 'node:tls'
import { onTestFinished } from 'vitest'
import type { OutsideDial } from '../../src/net/outside.ts'

/** Where the MTA-STS policy of far.test is, on loopback: what it answers may be changed. */
export class PolicyHost {
  policy: string
  status = 200
  type = 'text/plain'
  /** The requests, as method and URL. */
  readonly asked: string[] = []
  #port = 0

  constructor(policy: string) {
    this.policy = policy
  }

  static async start(
    { cert, key }: { cert: string; key: string },
    { mode, mx, age = 86_400 }: { mode: string; mx: string; age?: number },
  ): Promise<PolicyHost> {
    const policyHost = new PolicyHost(`version: STSv1\r\nmode: ${mode}\r\nmx: ${mx}\r\nmax_age: ${age}\r\n`)
    const server = createServer({ cert, key }, (request, response) => {
      policyHost.asked.push(`${request.method} https://${request.headers.host}${request.url}`)
      response
        .writeHead(policyHost.status, { 'content-type': policyHost.type, location: 'https://elsewhere.test/' })
        .end(policyHost.policy)
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    policyHost.#port = (server.address() as AddressInfo).port
    onTestFinished(() => {
      server.closeAllConnections()
      server.close()
    })
    return policyHost
  }

  /** Port 443 of the policy host, which no test can have: TLS with its certificate checked, as ever. */
  get dial(): OutsideDial {
    return ({ hostname }, done) => {
      const socket = connect({ host: '127.0.0.1', port: this.#port, servername: hostname, ALPNProtocols: ['http/1.1'] })
      socket.once('error', (error) => done(error, null))
      socket.once('secureConnect', () => done(null, socket))
    }
  }
}
