import type { Authentication, Verdict } from '../../../src/mail/model.ts'
import {
  type Difference,
  type Looser,
  looser,
  looserChain,
  policyDifferences,
  spfDifferences,
  stricter,
  uncounted,
} from './differences.ts'
import { factsOf, fieldsOf, type SignatureFacts } from './facts.ts'
import type { Arbitration, Judgement, Opinion } from './oracle.ts'
import type { Try } from './try.ts'
import type { Records, Zone } from './zone.ts'

/** The verdict of the box and the opinion of others on one try. */
export interface Judged {
  tried: Try
  verdict: Verdict
  opinion: Opinion
  /** Asks a third implementation; where the box passes what the second does not. */
  arbitrate: () => Promise<Arbitration>
  /** Asks the second again, by other records. */
  again: (zone: Zone) => Promise<Opinion>
}

export interface Comparison {
  faults: string[]
  /** Disagreements that are not faults of the box. */
  differences: Difference[]
  /** Results that are a pass of the box and of another implementation. */
  agreed: number
}

export async function compare(judged: Judged): Promise<Comparison> {
  const found: Comparison = { faults: [], differences: [], agreed: 0 }
  await compareSpf(judged, found)
  await compareSignatures(judged, found)
  await compareChain(judged, found)
  comparePolicy(judged, found)
  return found
}

async function compareSpf({ tried, verdict, opinion, again }: Judged, found: Comparison): Promise<void> {
  const { spf } = verdict.authentication
  if (spf.result === opinion.spf.result) {
    found.agreed += Number(spf.result === 'pass')
    return
  }
  const [box, oracle] = [shown(spf), shown(opinion.spf)]
  const records = Object.values(tried.zone)
    .flatMap(({ TXT = [] }) => TXT.map((texts) => texts.join('')))
    .join('\n')
  const difference = spfDifferences.find(({ holds }) => holds({ box, oracle, records }))
  // a pass is explained by an error of the second, or by names that it passes too once they are in lower case
  const isPass = spf.result === 'pass' && !/^(?:perm|temp)error/.test(oracle)
  const agrees = isPass && (await again(withSmallNames(tried.zone))).spf.result === 'pass'
  note(isPass && !agrees ? undefined : difference, `SPF: ${box}, by pyspf ${oracle}`, found)
}

function withSmallNames(zone: Zone): Zone {
  return Object.fromEntries(
    Object.entries(zone).map(([name, records]) => [
      name,
      records.TXT ? { ...records, TXT: records.TXT.map(withSmallModifiers) } : records,
    ]),
  )
}

function withSmallModifiers(texts: string[]): string[] {
  return [texts.join('').replaceAll(/\b(?:redirect|exp)=/gi, (name) => name.toLowerCase())]
}

async function compareSignatures({ tried, verdict, opinion, arbitrate }: Judged, found: Comparison): Promise<void> {
  const boxes = verdict.authentication.dkim.filter(({ reason }) => reason !== 'message not signed')
  const fields = fieldsOf(tried.raw, 'dkim-signature')
  // the box verifies one signature with l=, as none of them counts
  const withLength = fields.flatMap((field, index) => (/[;:]\s*l\s*=/.test(field) ? [index] : [])).slice(1)
  const compared = [...fields.keys()].filter((index) => !withLength.includes(index))
  if (boxes.length !== compared.length) {
    if (boxes.some(({ result }) => result === 'pass'))
      found.faults.push(`DKIM: ${compared.length} signatures are ${boxes.map(({ result }) => result).join()}`)
    else if (opinion.dkim.some(({ result }) => result === 'pass')) found.differences.push(uncounted)
    return
  }
  for (const [index, box] of boxes.entries()) {
    const facts = factsOf(fields[compared[index]!]!, tried)
    const second = opinion.dkim[compared[index]!]
    const text = `DKIM ${index}: ${shown(box)}, by dkimpy ${second === undefined ? opinion.dkim_error : shown(second)}`
    if (box.result === 'pass') {
      forbid(facts, text, found)
      found.agreed += Number(second?.result === 'pass')
      if (second?.result === 'pass') continue
      const third = (await arbitrate()).dkim.find(({ b }) => b === facts.tags['b']?.replaceAll(/\s/g, ''))
      found.agreed += Number(third?.result === 'pass')
      if (third?.result !== 'pass') note(holding(looser, facts), `${text}, by Mail::DKIM ${third && shown(third)}`, found)
    } else if (second?.result === 'pass') note(reasonOf(box.reason, [facts]), text, found)
  }
}

async function compareChain({ tried, verdict, opinion, arbitrate }: Judged, found: Comparison): Promise<void> {
  const { arc } = verdict.authentication
  const [newest] = fieldsOf(tried.raw, 'arc-message-signature').toSorted((one, other) => instanceOf(other) - instanceOf(one))
  if (newest === undefined) {
    if (arc.result === 'pass') found.faults.push('ARC: it passes without a set')
    return
  }
  const facts = factsOf(newest, tried)
  const text = `ARC: ${shown(arc)}, by dkimpy ${shown(opinion.arc)}`
  if (arc.result === 'pass') {
    // content that is ambiguous counts for acceptance alone
    forbid(facts, text, found)
    found.agreed += Number(opinion.arc.result === 'pass')
    if (opinion.arc.result === 'pass') return
    const { arc: third } = await arbitrate()
    found.agreed += Number(third.result === 'pass')
    if (third.result !== 'pass')
      note(holding(looserChain, facts) ?? holding(looser, facts), `${text}, by Mail::DKIM ${shown(third)}`, found)
  } else if (opinion.arc.result === 'pass') {
    const seals = fieldsOf(tried.raw, 'arc-seal').map((field) => factsOf(field, tried))
    const reason = arc.reason?.replace(/^i=\d+ /, '') ?? null
    note(reasonOf(reason, [facts, ...seals]), text, found)
  }
}

function comparePolicy(judged: Judged, found: Comparison): void {
  const { verdict, opinion, tried } = judged
  const { dmarc } = verdict.authentication
  const { walk, below, author, result, reason: read, tree } = opinion.dmarc
  const text = `DMARC of ${dmarc.domain}: ${shown(dmarc)}, of ${author}: by the walk ${walk}, by authheaders ${result}`
  if (dmarc.result === 'pass' && author === null && isAfterPhrase(tried.raw, dmarc.domain))
    found.differences.push(policyDifferences.phrase)
  else if (dmarc.result === 'pass' && (author === null || (dmarc.domain !== author && tried.author !== dmarc.domain)))
    found.faults.push(`${text}: the author is another`)
  else if (dmarc.result === walk) {
    // the walk is of these trials: what it says alone counts where the tree decides
    if ((dmarc.result === 'pass') !== (result === 'pass'))
      note(tree ? policyDifferences.tree : reasonOfPolicy(judged), text, found)
    else found.agreed += Number(result === 'pass')
  } else if (dmarc.result !== 'pass' && (author === null || dmarc.domain !== author || isWithoutAuthor(dmarc)))
    found.differences.push(policyDifferences.author)
  else if (dmarc.result !== 'pass' && (walk === 'temperror' || dmarc.result === 'temperror'))
    found.differences.push(policyDifferences.failure)
  else if (dmarc.result === 'fail' && walk === 'pass' && (below === 'fail' || result !== 'pass' || read !== author))
    found.differences.push(policyDifferences.suffix)
  else if (dmarc.result === 'none' && Object.entries(tried.zone).some(isWithoutValue))
    found.differences.push(policyDifferences.syntax)
  else found.faults.push(text)
}

/** Why authheaders says otherwise than the box and the walk where the tree does not decide. */
function reasonOfPolicy({ verdict, opinion, tried }: Judged): Difference | undefined {
  const { dmarc } = verdict.authentication
  if (opinion.dmarc.result === 'error') return policyDifferences.header
  if (dmarc.result === 'temperror') return policyDifferences.failure
  if (dmarc.result === 'none') return policyDifferences.record
  if (opinion.dmarc.reason !== opinion.dmarc.author && /^from:.*"[^"]*@[^"]*"@/im.test(tried.raw.toString('latin1')))
    return policyDifferences.quoted
  const records = Object.entries(tried.zone).filter(([name]) => name.startsWith('_dmarc.'))
  const texts = records.flatMap(([, { TXT = [] }]) => TXT.map((parts) => parts.join('')))
  if (opinion.dmarc.result === 'none' && texts.some((text) => !text.startsWith('v=') && /^\s*v\s*=/i.test(text)))
    return policyDifferences.version
  if (
    opinion.dmarc.result === 'none' &&
    texts.some((text) => !hasPolicy.test(text) && /;\s*rua\s*=\s*[a-z][\w+.-]*:\S/i.test(text))
  )
    return policyDifferences.reporting
  return dmarc.result === 'pass' && texts.some((text) => /\ba(?:dkim|spf)\s*=\s*(?![rs]\s*(?:;|$))/i.test(text))
    ? policyDifferences.alignment
    : undefined
}

const hasPolicy = /;\s*p\s*=\s*(?:none|quarantine|reject)\s*(?:;|$)/i

/** True for a record of DMARC with a tag that has no value. */
function isWithoutValue([name, { TXT = [] }]: [string, Records]): boolean {
  return name.startsWith('_dmarc.') && TXT.some((texts) => /;[^=;]*\w[^=;]*(?:;|$)/.test(texts.join('')))
}

/** True if From is a phrase and one address of this domain in angle brackets. */
function isAfterPhrase(raw: Buffer, domain: string | null): boolean {
  const [from, another] = fieldsOf(raw, 'from')
  const address = /^[^<>]*<[^<>\s]+@([^<>\s@]+)>\s*$/.exec(from ?? '')
  return another === undefined && address !== null && address[1]!.toLowerCase() === domain
}

function isWithoutAuthor({ reason }: Authentication['dmarc']): boolean {
  return /^(?:multiple-|no author|the From field is ambiguous|the header)/.test(reason ?? '')
}

/** What must not pass, whatever others say. */
function forbid(facts: SignatureFacts, text: string, found: Comparison): void {
  const broken = stricter.filter(({ holds, mayPass }) => mayPass !== true && holds?.(facts) === true)
  for (const { name, rfc, why } of broken) found.faults.push(`${text}: it passes against ${name} (${rfc}: ${why})`)
}

/** The difference that the reason of the box names, where it is so of one of these signatures. */
function reasonOf(reason: string | null, signatures: SignatureFacts[]): Difference | undefined {
  // of the newest signature of a chain the box does not say more
  if (reason === 'no valid signature') return stricter.find(({ holds }) => holds?.(signatures[0]!) === true)
  return stricter.find(
    ({ says, holds }) => says.test(reason ?? '') && (holds === undefined || signatures.some((facts) => holds(facts))),
  )
}

function holding(differences: Looser[], facts: SignatureFacts): Difference | undefined {
  return differences.find(({ holds }) => holds(facts))
}

function note(difference: Difference | undefined, fault: string, found: Comparison): void {
  if (difference === undefined) found.faults.push(fault)
  else found.differences.push(difference)
}

function instanceOf(field: string): number {
  return Number(/\bi\s*=\s*(\d+)/.exec(field)?.[1] ?? 0)
}

function shown({ result, reason }: { result: string; reason: string | null } | Judgement): string {
  return `${result} (${reason})`
}
