import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { formatEndpoint } from '../../../core/domain-names.ts'
import { day } from '../../../core/clock.ts'
import { about, newCheck, sharedCheck, type Check, reasonOf, spell } from '../check.ts'
import { type ShownCertificate } from '../conversation.ts'
import type { Line } from '../model.ts'
import type { BoxContext, ConfiguredPair, ListenerEndpoint, OuterContext } from '../context.ts'
import { certificateAt } from './ports.ts'

/** The remaining lifetimes that are a warning and a failure: in milliseconds, and as a fraction for short-lived certificates. */
const early = { milliseconds: 21 * day, part: 21 / 90 }
const late = { milliseconds: 7 * day, part: 7 / 90 }

const byFiles = 'Renew it, replace the files, then: systemctl reload pillarbox'
const byAcme = 'pillarbox certificate list shows the problem; then: pillarbox certificate renew'

/** Checks the certificates in use, and those in files: their lifetime, names, and whether key and certificate match. */
export function certificates({ settings, publicUrl, present, now }: OuterContext): Check {
  const { pairs, strict, acme, hostname } = settings
  const inFile = async (pair: ConfiguredPair): Promise<Line> => {
    const line = about('tls', `${pair.setting} ${pair.cert}`)
    try {
      const certificate = new X509Certificate(await readFile(pair.cert))
      if (!certificate.checkPrivateKey(createPrivateKey(await readFile(pair.key)))) {
        return line.fail(
          `The key in ${pair.key} does not belong to the certificate: the box could not be restarted.`,
          `Set ${pair.setting}.key to the private key of the certificate.`,
        )
      }
      return judge(line, { certificate, distrust: null }, { name: pair.name, now: now(), renew: byFiles })
    } catch (error) {
      return line.fail(
        `It cannot be read: ${reasonOf(error)}.`,
        `Put the certificate and key there in PEM form, or change ${pair.setting}.`,
      )
    }
  }
  const atListener = async (listener: ListenerEndpoint): Promise<Line[]> => {
    const name = listener.protocol === 'https' ? new URL(publicUrl()).hostname : hostname
    const showing = certificateAt(listener, name, settings)
    if (!showing) return []
    const line = about('tls', `${listener.protocol} ${formatEndpoint(listener)}`)
    try {
      const presented = await showing
      const own = acme && !pairs.some(({ setting }) => setting === settingOf(listener))
      const judged = judge(line, presented, { name, now: now(), renew: own ? byAcme : byFiles })
      if (judged.status !== 'pass' || presented.distrust === null) return [judged]
      return [untrusted(listener, presented.distrust, { strict, renew: own ? byAcme : undefined })]
    } catch (error) {
      return [
        line.fail(`TLS is not available: ${reasonOf(error)}.`, 'Check the log of the box; configure a readable certificate.'),
      ]
    }
  }
  return newCheck('tls', 'usual', async () => {
    const [files, shown] = await Promise.all([
      Promise.all(pairs.map((pair) => inFile(pair))),
      Promise.all((present() ?? []).map((listener) => atListener(listener))),
    ])
    return [...files, ...shown.flat()]
  })
}

function judge(
  line: ReturnType<typeof about>,
  { certificate }: ShownCertificate,
  { name, now, renew }: { name: string; now: number; renew: string },
): Line {
  const ends = certificate.validToDate.getTime()
  const left = ends - now
  const life = ends - certificate.validFromDate.getTime()
  const short = ({ milliseconds, part }: typeof early): boolean => left < Math.min(milliseconds, part * life)
  const until = certificate.validToDate.toISOString().slice(0, 10)
  if (left <= 0) return line.fail(`It expired on ${until}.`, renew)
  if (certificate.validFromDate.getTime() > now) {
    return line.fail(`It is valid only from ${certificate.validFromDate.toISOString()}.`, 'Check the clock of this machine.')
  }
  if (certificate.checkHost(name) === undefined) {
    const names = (certificate.subjectAltName ?? certificate.subject).replaceAll('\n', ', ').slice(0, 200)
    return line.fail(`It is for ${names}, not for ${name}.`, `Get a certificate that names ${name}.`)
  }
  if (short(early)) return line.of(short(late) ? 'fail' : 'warn', `It expires in ${spell(left)}, on ${until}.`, renew)
  return line.pass(`It is for ${name}, and valid until ${until}.`)
}

function settingOf({ protocol }: ListenerEndpoint): string {
  return protocol === 'https' ? 'http.tls' : 'smtp.tls'
}

function untrusted(
  listener: ListenerEndpoint,
  why: string,
  { strict, renew }: { strict: boolean; renew: string | undefined },
): Line {
  const line = about('tls', `${listener.protocol} ${formatEndpoint(listener)}`)
  const setting = settingOf(listener)
  const chain = why.includes('VERIFY_LEAF') || why.includes('ISSUER')
  const message = chain
    ? `Clients that verify it do not trust it (${why}): intermediate certificates may be missing.`
    : `Clients do not trust it (${why}): it is not signed by a CA they know.`
  const fix = chain
    ? `Put the complete chain into ${setting}.cert: the certificate first, then the intermediate certificates.`
    : (renew ?? `Set acme.agree_terms, or ${setting}.cert and ${setting}.key to a certificate of a public authority.`)
  return line.of(listener.protocol === 'smtp' && strict ? 'fail' : 'warn', message, fix)
}

/** Checks whether enabled reports to other domains can be sent. */
export function reports({ reports: status }: BoxContext): Check {
  return sharedCheck('reports', 'often', async () => {
    const obstacle = status()
    if (obstacle === undefined) return []
    const line = about('reports', 'to other domains')
    return [obstacle === null ? line.pass('They can be sent.') : line.warn(`They are not sent: ${obstacle.why}`, obstacle.fix)]
  })
}
