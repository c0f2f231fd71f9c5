import { expect, onTestFinished, test } from 'vitest'
import { EventLog } from '../../src/events/log.ts'
import { Cascade } from '../../src/identities/cascade.ts'
import { identityDeleted } from '../../src/identities/model.ts'
import { opened, quiet } from '../store/opened.ts'
import { folder } from '../support/folder.ts'
import { settled } from '../support/settled.ts'
import { left, nothing, rich } from './rich.ts'

test('much that a deleted identity had ends soon after it, and is out of reach at once', async () => {
  const desk = await rich()
  const ids = desk.rows('SELECT id FROM cards').map(({ id }) => String(id))
  await desk.delete(`/v1/identities/${desk.ada.id}`)
  await Promise.all(ids.map((id) => expect(desk.post(`/v1/cards/${id}/reveal`, {})).rejects.toThrow('404')))
  await expect.poll(() => left(desk)).toEqual(nothing)
})

test('accounts take turns: another’s identity ends while one with more is at work', async () => {
  const { database } = await opened(folder())
  const events = new EventLog(database, { now: () => 0 })
  const cascade = new Cascade({ events, log: quiet })
  const parts: string[] = []
  const gate = Promise.withResolvers<void>()
  cascade.add(async (tx, identityId, after) => {
    tx.afterCommit(() => {
      parts.push(identityId)
      if (parts.length === 3) gate.resolve()
    })
    const most = identityId === 'small' ? 2 : 50
    return after + 1 < most ? after + 1 : undefined
  })
  cascade.start()
  onTestFinished(async () => {
    await cascade.stop()
    await database.close()
  })
  await settled(events)
  const remove = (account_id: string, identity_id: string): Promise<unknown> =>
    database.transaction((tx) => events.append(tx, identityDeleted, { account_id, identity_id, data: {} as never }))
  await remove('acct_a', 'large')
  await gate.promise
  await remove('acct_b', 'small')
  await settled(events)
  expect(parts.filter((id) => id === 'large').length).toBe(50)
  expect(parts.filter((id) => id === 'small').length).toBe(2)
  expect(parts.lastIndexOf('small')).toBeLessThan(parts.length - 10)
})
