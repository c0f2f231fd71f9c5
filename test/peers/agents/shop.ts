import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { codeAt } from '../../../src/totp/codes.ts'
import { deliver, message } from '../../support/appliance.ts'
import { listenOnLoopback } from '../../support/loopback.ts'

/** The secret of the one-time passwords of everybody here: of JBSWY3DPEHPK3PXP in base32. */
const secret = Buffer.from('48656c6c6f21deadbeef', 'hex')
export const sharedSecret = 'JBSWY3DPEHPK3PXP'

/** A web site where one signs up with an e-mail address, proves it by a code that comes by mail, and signs in by TOTP. */
export class Shop {
  readonly #server = createServer((request, response) => void this.#answer(request, response))
  readonly #smtp: { host: string; port: number }
  readonly #codes = new Map<string, string>()
  readonly verified = new Set<string>()
  readonly signedIn = new Set<string>()

  constructor(smtp: { host: string; port: number }) {
    this.#smtp = smtp
  }

  listen(): Promise<string> {
    return listenOnLoopback(this.#server)
  }

  close(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const form = new URLSearchParams(await text(request))
    const email = form.get('email') ?? ''
    const [status, page] = await this.#page(request.url!, email, form)
    response.writeHead(status, { 'Content-Type': 'text/html' }).end(`<p>${page}</p>`)
  }

  async #page(path: string, email: string, form: URLSearchParams): Promise<[number, string]> {
    if (path === '/signup' && email.includes('@')) {
      const code = String(100_000 + Math.floor(Math.random() * 900_000))
      this.#codes.set(email, code)
      const fields = { From: 'Shop <no-reply@shop.test>', To: email, Subject: 'Confirm your address' }
      await deliver(this.#smtp, { to: email, raw: message(fields, `Your verification code is ${code}.\n`) })
      return [200, 'We sent you a code. Enter it at /verify (fields email, code).']
    }
    if (path === '/verify') {
      if (this.#codes.get(email) !== form.get('code')) return [403, 'This code is wrong.']
      this.verified.add(email)
      return [200, 'Your address is confirmed. Sign in at /login (fields email, otp).']
    }
    if (path === '/login') {
      const recipe = { algorithm: 'SHA1', digits: 6, period: 30 } as const
      const codes = [-30_000, 0, 30_000].map((by) => codeAt(secret, recipe, Date.now() + by))
      if (!this.verified.has(email) || !codes.includes(form.get('otp') ?? '')) return [403, 'Sign-in failed.']
      this.signedIn.add(email)
      return [200, 'Welcome.']
    }
    return [404, 'There is no such page. Sign up at /signup (field email).']
  }
}
