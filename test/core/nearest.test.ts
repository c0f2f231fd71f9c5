import { expect, test } from 'vitest'
import { nearest } from '../../src/core/text.ts'

const names = ['display_name', 'metadata', 'email_username', 'to', 'cc']

test.each([
  ['displayName', 'display_name'],
  ['dispaly_name', 'display_name'],
  ['meta_data', 'metadata'],
  ['metdata', 'metadata'],
  ['email_user_nmae', 'email_username'],
  ['tto', 'to'],
  ['TO', 'to'],
])('%s is near %s', (word, meant) => {
  expect(nearest(word, names)).toBe(meant)
})

test.each(['colour', 'x', '', '__', 'x'.repeat(100_000)])('nothing is near %.10s', (word) => {
  expect(nearest(word, names)).toBeUndefined()
})

test('the nearest of several wins', () => {
  expect(nearest('listem', ['listed', 'listen', 'list'])).toBe('listed')
  expect(nearest('listen', ['listed', 'listen'])).toBe('listen')
})
