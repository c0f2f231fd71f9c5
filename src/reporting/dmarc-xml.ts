import type { PublishedPolicy } from '../mail/model.ts'
import type { DmarcRecord } from './dmarc-result.ts'

/** The fields that reports of both kinds have. */
export interface ReportHeader {
  organization: string
  contact: string
  report_id: string
  /** Milliseconds since the Unix epoch; the end is the last second. */
  begin: number
  end: number
}

interface DmarcReportContent extends ReportHeader {
  generator: string
  policy: PublishedPolicy
  /** The number of messages that are in no row. */
  dropped: number
  rows: { record: DmarcRecord; count: number }[]
}

/** An aggregate report (RFC 9990 appendix A). */
export function dmarcXml(content: DmarcReportContent): string {
  const { policy } = content
  const metadata = [
    leaf('org_name', content.organization),
    leaf('email', content.contact),
    leaf('report_id', content.report_id),
    group('date_range', [leaf('begin', seconds(content.begin)), leaf('end', seconds(content.end))]),
    ...(content.dropped > 0 ? [leaf('error', `${content.dropped} more messages were received than fit into this report`)] : []),
    leaf('generator', content.generator),
  ]
  const published = [
    leaf('domain', policy.domain),
    leaf('discovery_method', 'treewalk'),
    leaf('p', policy.p),
    leaf('sp', policy.sp),
    ...(policy.np === null ? [] : [leaf('np', policy.np)]),
    ...(policy.fo === null ? [] : [leaf('fo', policy.fo)]),
    leaf('adkim', policy.adkim),
    leaf('aspf', policy.aspf),
    leaf('testing', policy.testing ? 'y' : 'n'),
  ]
  return [
    '<?xml version="1.0" encoding="UTF-8"?>\n',
    '<feedback xmlns="urn:ietf:params:xml:ns:dmarc-2.0">\n',
    leaf('version', '1.0'),
    group('report_metadata', metadata),
    group('policy_published', published),
    ...content.rows.map(recordOf),
    '</feedback>\n',
  ].join('')
}

function recordOf({ record, count }: DmarcReportContent['rows'][number]): string {
  const { source_ip, disposition, dkim, spf, override, header_from, envelope_from, dkim_results, spf_result } = record
  const comment = override?.comment ?? null
  const reason = override && [leaf('type', override.type), ...(comment === null ? [] : [leaf('comment', comment)])]
  return group('record', [
    group('row', [
      leaf('source_ip', source_ip),
      leaf('count', String(count)),
      group('policy_evaluated', [
        leaf('disposition', disposition),
        leaf('dkim', dkim),
        leaf('spf', spf),
        ...(reason ? [group('reason', reason)] : []),
      ]),
    ]),
    group('identifiers', [leaf('header_from', header_from), leaf('envelope_from', envelope_from)]),
    group('auth_results', [
      ...dkim_results.map(({ domain, selector, result }) =>
        group('dkim', [leaf('domain', domain), leaf('selector', selector), leaf('result', result)]),
      ),
      ...(spf_result
        ? [group('spf', [leaf('domain', spf_result.domain), leaf('scope', 'mfrom'), leaf('result', spf_result.result)])]
        : []),
    ]),
  ])
}

function group(name: string, content: string[]): string {
  return `<${name}>\n${content.join('')}</${name}>\n`
}

function leaf(name: string, text: string): string {
  return `<${name}>${escaped(text)}</${name}>\n`
}

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&apos;' }

/** Removes characters that XML 1.0 (2.2) does not allow: control characters, lone surrogates, U+FFFE and U+FFFF. */
function escaped(text: string): string {
  return text
    .replaceAll(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, '')
    .replaceAll(/[&<>"']/g, (character) => entities[character]!)
}

function seconds(time: number): string {
  return String(Math.floor(time / 1000))
}
