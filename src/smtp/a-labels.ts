/* oxlint-disable no-underscore-dangle -- the library's own names */
interface Reader {
  _parseAddressCommand(name: string, command: string | Buffer): { address: string } | false
}

/** Leaves an address that was written in ASCII so: the library spells its domain out, and then it would seem to need SMTPUTF8 (RFC 6531). */
export function preserveALabels(reader: Reader): void {
  const read = reader._parseAddressCommand.bind(reader)
  reader._parseAddressCommand = (name, command) => {
    const path = read(name, command)
    if (!path || nonAscii.test(command.toString())) return path
    // As written: many spellings are one name once they are mapped back to ASCII.
    const domain = /:\s*<[^<>\s]*@([^<>@\s]*)>/.exec(command.toString())?.[1]
    if (domain !== undefined && nonAscii.test(path.address)) path.address = withDomain(path.address, domain)
    return path
  }
}

function withDomain(address: string, domain: string): string {
  return address.slice(0, address.lastIndexOf('@') + 1) + domain
}

const nonAscii = /[^\0-\x7f]/
