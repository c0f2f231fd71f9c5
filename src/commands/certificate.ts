import type { Command } from 'commander'
import type { Certificate } from '../certificates/model.ts'
import { ofBox, onBox } from './support/box.ts'
import { table } from './support/say.ts'

export function addCertificateCommand(program: Command): void {
  const certificate = program.command('certificate').description('certificates of SMTP and the API')
  const list = certificate.command('list').description('list all certificates with source and expiry')
  ofBox(list).action(
    onBox(async (box) => {
      const { data } = await box.call<{ data: Certificate[] }>('GET', '/v1/certificates')
      return [data, formatCertificates(data)]
    }),
  )
  const renew = certificate
    .command('renew [name]')
    .description('reload the files, and request missing or due certificates from the CA now, or the one for this name')
  ofBox(renew).action(
    onBox(async (box, name: string | undefined) => {
      const { data } = await box.call<{ data: Certificate[] }>('POST', '/v1/certificates/renew', { name })
      if (data.some(({ problem }) => problem !== null)) process.exitCode = 1
      return [data, formatCertificates(data)]
    }),
  )
}

function formatCertificates(certificates: readonly Certificate[]): string {
  const rows = certificates.map(({ names, source, uses, not_after, problem }) => [
    names.join(' '),
    source,
    uses.join(' '),
    not_after ?? 'none yet',
    problem ?? '',
  ])
  return table(['NAMES', 'SOURCE', 'USED BY', 'GOOD UNTIL', ''], rows)
}
