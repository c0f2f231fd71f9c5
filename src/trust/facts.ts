import { emailReceived } from '../mail/model.ts'
import { emailBounced, emailComplained, emailDelivered, emailSent } from '../outbound/model.ts'
import type { EventHeader } from '../events/model.ts'
import { tokenIssued } from '../tokens/model.ts'
import { reputationReported } from './model.ts'
import type { Counters } from './score.ts'

/** The change that one event makes to the counters of an identity. */
interface Fact {
  identity_id: string
  counter: keyof Counters
  amount: number
}

type Told = Pick<EventHeader, 'type' | 'identity_id' | 'annotation'>

const plain: Record<string, { annotation: string; counter: keyof Counters }> = {
  [emailSent.name]: { annotation: 'outside', counter: 'deliveries' },
  [emailDelivered.name]: { annotation: 'outside', counter: 'deliveries' },
  [emailBounced.name]: { annotation: 'nobody', counter: 'bounces' },
  [emailComplained.name]: { annotation: 'outside', counter: 'complaints' },
  [emailReceived.name]: { annotation: 'answer', counter: 'replies' },
}

/** Events that always count, without an annotation. */
const always: Record<string, keyof Counters> = { [tokenIssued.name]: 'tokens' }

const reported = { positive: 'positive', negative: 'negative', dispute: 'disputed' } as const

type Counted = keyof typeof reported

export const countedTypes = [...Object.keys(plain), ...Object.keys(always), reputationReported.name]

/** The weight of an event, derived from fields that stay in the log after deletions; most events count for nothing. */
export function factOf({ type, identity_id, annotation }: Told): Fact | undefined {
  if (identity_id === null) return undefined
  const counter = always[type]
  if (counter) return { identity_id, counter, amount: 1 }
  const known = plain[type]
  if (known) return known.annotation === annotation ? { identity_id, counter: known.counter, amount: 1 } : undefined
  if (type !== reputationReported.name || annotation === null) return undefined
  const [kind = '', weight = ''] = annotation.split(' ')
  return isCounted(kind) ? { identity_id, counter: reported[kind], amount: Number(weight) } : undefined
}

/** The annotation of a report: its weight in thousandths. */
export function annotationOf(kind: Counted, counted: number): string {
  return `${kind} ${counted}`
}

export function isCounted(type: string): type is Counted {
  return Object.hasOwn(reported, type)
}
