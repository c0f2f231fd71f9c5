/* oxlint-disable no-underscore-dangle -- the library's own names */
import { domainToASCII } from 'node:url'

interface Reader {
  _parseAddressCommand(name: string, command: string | Buffer): { address: string } | false
}

/** Leaves an address that was written in ASCII so: the library spells its domain out, and then it would seem to need SMTPUTF8 (RFC 6531). */
export function keepALabels(reader: Reader): void {
  const read = reader._parseAddressCommand.bind(reader)
  reader._parseAddressCommand = (name, command) => {
    const path = read(name, command)
    if (!path || nonAscii.test(command.toString())) return path
    const at = path.address.lastIndexOf('@') + 1
    const domain = path.address.slice(at)
    if (nonAscii.test(domain)) path.address = `${path.address.slice(0, at)}${domainToASCII(domain)}`
    return path
  }
}

const nonAscii = /[^\0-\x7f]/
