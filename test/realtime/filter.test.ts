import fc from 'fast-check'
import { RE2JS } from 're2js'
import { afterEach, expect, test, vi } from 'vitest'
import { Fault } from '../../src/core/fault.ts'
import { readFilter } from '../../src/realtime/filter.ts'

afterEach(() => void vi.restoreAllMocks())

const row = {
  id: 'email_1',
  identity_id: 'ident_1',
  subject: 'Your Code, please',
  read: false,
  size: 900,
  tag: null,
  received_at: '2026-11-20T10:05:00.123Z',
  labels: ['a', 'b'],
}

test.each([
  ['identity_id=eq.ident_1', true],
  ['identity_id=eq.ident_2', false],
  ['identity_id=neq.ident_2', true],
  ['identity_id=eq.ident_1,read=is.false', true],
  ['identity_id=eq.ident_1,read=is.true', false],
  ['read=eq.false', true],
  ['read=eq.f', true],
  ['read=neq.true', true],
  ['size=gt.90', true],
  ['size=lt.1000', true],
  ['size=gte.900', true],
  ['size=lte.899', false],
  ['size=eq.9e2', true],
  ['size=eq.large', false],
  ['received_at=gte.2026-11-20', true],
  ['received_at=lt.2026-11-20', false],
  ['subject=in.(x,"Your Code, please")', true],
  ['identity_id=in.(ident_2,ident_1),size=in.(1,900)', true],
  ['identity_id=in.(ident_2,ident_3)', false],
  ['identity_id=in.(ident_2, ident_1)', true],
  ['subject=in.(x, "Your Code, please" )', true],
  ['identity_id=not.in.(ident_2)', true],
  ['tag=is.null', true],
  ['tag=not.is.null', false],
  ['subject=not.is.null', true],
  ['tag=eq.x', false],
  ['tag=neq.x', false],
  ['tag=not.eq.x', false],
  ['tag=isdistinct.x', true],
  ['tag=isdistinct.null', false],
  ['tag=not.isdistinct.null', true],
  ['missing=isdistinct.x', true],
  ['subject=like.Your%', true],
  ['subject=like.*Code*', true],
  ['subject=like.your%', false],
  ['subject=ilike.your%', true],
  ['subject=like.Your_Code__please', true],
  ['subject=like.Your\\_Code%', false],
  ['subject=like.Your', false],
  ['subject=match.^Your [A-Z]', true],
  ['subject=imatch.code', true],
  ['subject=match.code', false],
  ['subject=not.match.code', true],
  ['toString=eq.x', false],
])('%s: %s', (filter, passes) => {
  expect(readFilter(filter).passes(row)).toBe(passes)
})

test.each([
  '',
  'identity_id',
  'identity_id=ident_1',
  'a=like',
  'a=between.1',
  'a=constructor.1',
  'a=in.1',
  'a=is.7',
  'a=match.(',
  'a=eq.1,',
  'a=match.(?=x)',
])('%s is refused', (filter) => {
  expect(() => readFilter(filter)).toThrow(Fault)
})

test('the identity asked for is known, unless the condition is turned round', () => {
  expect(readFilter('read=is.false,identity_id=eq.ident_1').identity_id).toBe('ident_1')
  expect(readFilter('identity_id=not.eq.ident_1').identity_id).toBeUndefined()
  expect(readFilter('identity_id=in.(ident_1)').identity_id).toBeUndefined()
})

test('any text is either read or refused', () => {
  const operator = fc.constantFrom('eq', 'neq', 'lt', 'in', 'is', 'like', 'ilike', 'match', 'imatch', 'isdistinct', 'nope')
  const condition = fc
    .tuple(fc.constantFrom('subject', 'size', 'read', 'tag', 'labels'), fc.constantFrom('', 'not.'), operator, fc.string())
    .map(([column, not, name, value]) => `${column}=${not}${name}.${value}`)
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        condition,
        fc.array(condition).map((list) => list.join(',')),
      ),
      (filter) => {
        try {
          expect(typeof readFilter(filter).passes(row)).toBe('boolean')
        } catch (error) {
          expect(error).toBeInstanceOf(Fault)
        }
      },
    ),
    { seed: 9, numRuns: 2000 },
  )
})

test('a pattern made to be slow is not', () => {
  const filter = readFilter('subject=match.^(a+)+$,subject=match.(a*)*b')
  expect(filter.passes({ subject: `${'a'.repeat(100_000)}!` })).toBe(false)
})

test.each(['(a?){1000}', '((a{30}){30})', '(a?){600}$', '[ab]{501}', '\\Q[\\E(a?){400}(b?){400}]', 'x'.repeat(501)])(
  'a pattern that is a long program, %s, is refused',
  (pattern) => {
    expect(() => readFilter(`subject=match.${pattern}`)).toThrow('500 steps')
  },
)

test.each(['(){1000}'.repeat(240), `[A-[:x:]${'a{1000}'.repeat(240)}]`])('so is %s', (pattern) => {
  const compiling = vi.spyOn(RE2JS, 'compile')
  expect(() => readFilter(`subject=match.${pattern}`)).toThrow('500 steps')
  expect(compiling).not.toHaveBeenCalled()
})

test.each([
  `imatch.${'[b-\u{1e942}]'.repeat(325)}`,
  'imatch.[b-\u{1e942}b-\u{1e942}]',
  'imatch.[]-\u{1e942}]-\u{1e942}[b-\u{1e942}]',
  'imatch.[[:alpha:]-\u{1e942}b-\\x{1e942}\\142-\\x{1e942}]',
  'imatch.[\\d-[:alpha:]b-\u{1e942}b-\u{1e942}]',
  'match.(?s-mi:[b-\u{1e942}]{2}[^b-\u{1e942}])',
  `match.${'\\pL'.repeat(400)}`,
  `imatch.[^${'\\PL'.repeat(400)}]`,
  'match.^\\p{L}{490}$',
])('a pattern whose classes take long to compile, %s, is refused before they are', (value) => {
  const compiling = vi.spyOn(RE2JS, 'compile')
  expect(() => readFilter(`subject=${value}`)).toThrow('too many characters in its classes (over 150000)')
  expect(compiling).not.toHaveBeenCalled()
})

test('many patterns whose classes take long together are refused at the second', () => {
  const compiling = vi.spyOn(RE2JS, 'compile')
  const conditions = Array.from({ length: 60 }, () => 'subject=imatch.[b-\u{1e942}]')
  expect(() => readFilter(conditions.join(','))).toThrow('too many characters in their classes together')
  expect(compiling).toHaveBeenCalledTimes(2)
})

test('many patterns together are refused like a long one', () => {
  const conditions = Array.from({ length: 10 }, () => 'subject=match.(a?){30}$')
  expect(() => readFilter(conditions.join(','))).toThrow('500 steps')
  expect(readFilter(conditions.slice(0, 2).join(',')).steps).toBeGreaterThan(60)
})

test('patterns of ordinary size are taken as they are', () => {
  for (const pattern of [
    '^[A-Z]{2}-\\d{6}$',
    '\\bcode: (\\d{6}|[[:upper:]]{8})\\b',
    '(invoice|receipt){3}',
    '\\x{41}+',
    '^[\\p{L}\\p{N}]{64}$',
    '[一-龥]{8}[^\\x00-\\x7f]',
    '[\\x{80}-\\x{10ffff}]',
    '[]a-z[-][^]]',
  ]) {
    expect(readFilter(`subject=match.${pattern}`).steps).toBeGreaterThan(0)
    expect(readFilter(`subject=imatch.${pattern}`).steps).toBeGreaterThan(0)
  }
})
