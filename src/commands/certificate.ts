import type { Command } from 'commander'
import { type BoxOptions, ofBox, withBox } from './support/box.ts'
import { say, table, withJson } from './support/say.ts'

type Options = BoxOptions & { json?: boolean }

interface Certificate {
  uses: string[]
  source: string
  names: string[]
  not_after: string | null
  problem: string | null
}

/** `pillarbox certificate list|renew`. */
export function addCertificateCommand(program: Command): void {
  const certificate = program.command('certificate').description('certificates of SMTP and the API')
  withJson(ofBox(certificate.command('list').description('list all certificates with source and expiry'))).action(
    (options: Options) =>
      withBox(options, async (box) => {
        const { data } = await box.call<{ data: Certificate[] }>('GET', '/v1/certificates')
        say(options, data, formatCertificates(data))
      }),
  )
  const renew = certificate
    .command('renew [name]')
    .description('reload the files, and request missing or due certificates from the CA now, or the one for this name')
  withJson(ofBox(renew)).action((name: string | undefined, options: Options) =>
    withBox(options, async (box) => {
      const { data } = await box.call<{ data: Certificate[] }>(
        'POST',
        '/v1/certificates/renew',
        name === undefined ? {} : { name },
      )
      say(options, data, formatCertificates(data))
      if (data.some(({ problem }) => problem !== null)) process.exitCode = 1
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
