import { Text } from './values.ts'

const File = Text('the path of a file')

/** A setting. */
export const certificateFile = File.meta({
  description: 'PEM file with the certificate, then those that lead to its root',
  file: true,
  example: 'tls/cert.pem',
})
/** A setting. */
export const keyFile = File.meta({
  description: 'PEM file with the private key of the certificate',
  file: true,
  example: 'tls/key.pem',
})

/** How sizes may be written. */
export const bytes = 'bytes, or with a unit such as kB, MiB or GiB'
/** How times may be written. */
export const time = 'milliseconds, or with a unit: ms, s, min, h or d'
