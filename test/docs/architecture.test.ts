import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { EmailStatus } from '../../src/mail/model.ts'
import { QueueEntry, QueueEntryWithHistory } from '../../src/ops/status/model.ts'
import { pages, root } from './pages.ts'

const page = pages.get('docs/architecture.md')!
const named = new Set([...page.matchAll(/`([a-z-]+(?:\/[a-z0-9-]+)*\.ts)`/g)].map(([, file]) => file!))

test('every file that the page names is there', () => {
  expect([...named].filter((file) => !existsSync(join(root, 'src', file)))).toEqual([])
})

test('every file about mail, the queue and the log is on the page', () => {
  const all = ['smtp', 'message', 'mailauth', 'mail', 'outbound', 'queue', 'events'].flatMap((folder) =>
    readdirSync(join(root, 'src', folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => `${folder}/${name}`),
  )
  expect(all.filter((file) => !named.has(file))).toEqual([])
})

test('every state of a message, of the queue and of an attempt is on the page', () => {
  const states = [
    ...EmailStatus.options,
    ...QueueEntry.shape.state.options,
    ...QueueEntryWithHistory.shape.history.element.shape.outcome.options.filter((outcome) => outcome !== 'pending'),
  ]
  expect(states.filter((state) => !page.includes(`\`${state}\``))).toEqual([])
})
