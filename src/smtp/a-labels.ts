/* oxlint-disable no-underscore-dangle -- the library's own names */
interface Reader {
  _parseAddressCommand(name: string, command: string | Buffer): { address: string } | false
}

/** Keeps the A-labels of an address that was written in ASCII. The library decodes them to Unicode, and the address would then seem to need SMTPUTF8 (RFC 6531). */
export function preserveALabels(reader: Reader): void {
  const read = reader._parseAddressCommand.bind(reader)
  reader._parseAddressCommand = (name, command) => {
    const path = read(name, command)
    if (!path || nonAscii.test(command.toString())) return path
    // The domain is kept as written: several Unicode spellings map to one ASCII name.
    const domain = /:\s*<[^<>\s]*@([^<>@\s]*)>/.exec(command.toString())?.[1]
    if (domain !== undefined && nonAscii.test(path.address)) path.address = withDomain(path.address, domain)
    return path
  }
}

function withDomain(address: string, domain: string): string {
  return address.slice(0, address.lastIndexOf('@') + 1) + domain
}

const nonAscii = /[^\0-\x7f]/
