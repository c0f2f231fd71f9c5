import { expect, test } from 'vitest'
import { left, nothing, rich } from './rich.ts'

for (const [what, event] of [
  ['cards', 'card.cancelled'],
  ['e-mails', 'email.cancelled'],
]) {
  test(`killed in the middle of the ${what} of a deleted identity: the rest ends at the next start, each once`, async () => {
    const desk = await rich()
    desk.hold(
      `BEFORE INSERT ON events WHEN NEW.type = '${event}' AND (SELECT count(*) FROM events WHERE type = '${event}') >= 120`,
    )
    await desk.delete(`/v1/identities/${desk.ada.id}`)
    await desk.box.said('follower of the event log failed, retrying')
    await desk.kill()
    expect(left(desk)).toMatchObject({
      [event === 'card.cancelled' ? 'card_events' : 'email_events']: 100,
      emails: expect.any(Number),
    })
    desk.release()
    await desk.start()
    await expect.poll(() => left(desk)).toEqual(nothing)
  })
}
