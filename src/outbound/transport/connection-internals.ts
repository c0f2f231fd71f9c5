/* oxlint-disable no-underscore-dangle -- the library's own names */
// uses internals of nodemailer's SMTPConnection for what its interface does not offer
import type { Socket } from 'node:net'
import tls from 'node:tls'
import type { SecureStream } from '../../net/secure-stream.ts'

/** Internals of the library that its types do not have. */
interface LibraryInternals {
  _supportedExtensions: string[]
  _sendCommand: (this: unknown, command: string, logged?: string) => void
  _onData: (this: unknown, chunk: Buffer) => void
  _responseQueue: string[]
  _onResponseTooLarge: () => void
  _upgradeConnection: (this: unknown, done: unknown) => void
}

/** Maximum bytes of what a server sends after a command, with all lines. */
export const largestReply = 64 * 1024

/** Replies that may wait to be read, empty lines too: of a message sent with PIPELINING there are three. */
const maxReplies = 32

/** The extensions of the server's last EHLO reply. */
export function extensionsOf(connection: object): readonly string[] {
  return (connection as LibraryInternals)._supportedExtensions
}

/** Ends a session whose server sends more than replies need. The library limits one reply, and keeps any number of empty lines. */
export function limitReplies(connection: object): void {
  const inside = connection as LibraryInternals
  const { _onData: receive, _sendCommand: say } = inside
  let received = 0
  inside._sendCommand = function send(command, logged) {
    received = 0
    say.call(this, command, logged)
  }
  inside._onData = function take(chunk) {
    received += chunk.length
    if (received <= largestReply) receive.call(this, chunk)
    if (received > largestReply || inside._responseQueue.length > maxReplies) inside._onResponseTooLarge()
  }
}

/** Adds SMTPUTF8 to MAIL FROM, which the library only does for addresses of the envelope: names in the header need it too (RFC 6531 3.4). */
export function declareInternational(connection: object): () => void {
  const inside = connection as LibraryInternals
  const say = inside._sendCommand
  inside._sendCommand = function send(command, logged) {
    say.call(this, command.startsWith('MAIL FROM:') ? `${command} SMTPUTF8` : command, logged)
  }
  return () => {
    inside._sendCommand = say
  }
}

/** Begins TLS with `secure` in place of `tls.connect`, which the library calls at once. */
export function secureWith(connection: object, secure: (socket: Socket) => SecureStream): void {
  const inside = connection as LibraryInternals
  const { _upgradeConnection: upgrade } = inside
  inside._upgradeConnection = function begin(done) {
    const { connect } = tls
    tls.connect = ((options: tls.ConnectionOptions, onSecure: () => void) =>
      secure(options.socket as Socket).once('secureConnect', onSecure)) as unknown as typeof connect
    try {
      upgrade.call(this, done)
    } finally {
      tls.connect = connect
    }
  }
}
