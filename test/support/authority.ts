import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { generate } from 'selfsigned'
import { folder } from './folder.ts'

/** A certificate authority of a test, and a certificate by it for loopback. */
export interface Authority {
  /** The certificate of the authority, PEM. */
  ca: string
  caFile: string
  certFile: string
  keyFile: string
}

/** Makes an authority whose one certificate is for 127.0.0.1 and localhost; its files go with the test, unless a directory is given. */
export async function authority(directory = folder()): Promise<Authority> {
  const own = { keyType: 'ec', curve: 'P-256', algorithm: 'sha256' } as const
  const root = await generate([{ name: 'commonName', value: 'Authority of a test' }], {
    ...own,
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'keyUsage', keyCertSign: true, critical: true },
    ],
  })
  const leaf = await generate([{ name: 'commonName', value: 'localhost' }], {
    ...own,
    ca: { key: root.private, cert: root.cert },
    extensions: [
      { name: 'basicConstraints', cA: false, critical: true },
      { name: 'keyUsage', digitalSignature: true, critical: true },
      { name: 'extKeyUsage', serverAuth: true },
      {
        name: 'subjectAltName',
        altNames: [
          { type: 2, value: 'localhost' },
          { type: 7, ip: '127.0.0.1' },
        ],
      },
    ],
  })
  const file = (name: string, text: string): string => {
    const path = join(directory, name)
    writeFileSync(path, text, { mode: 0o600 })
    return path
  }
  return {
    ca: root.cert,
    caFile: file('ca.pem', root.cert),
    certFile: file('cert.pem', leaf.cert),
    keyFile: file('key.pem', leaf.private),
  }
}

/** The settings of a box that is reached over TLS with this certificate. */
export function overTls({ certFile, keyFile }: Authority): Record<string, string> {
  return {
    PILLARBOX_HTTP__TLS__CERT: certFile,
    PILLARBOX_HTTP__TLS__KEY: keyFile,
    PILLARBOX_HTTP__TLS__LISTEN: '127.0.0.1:0',
  }
}
