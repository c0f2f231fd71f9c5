import { expect } from 'vitest'
import { appliance, type Appliance } from '../support/appliance.ts'
import { movable } from '../support/held-clock.ts'
import { callback, TwilioStub, twilioSettings } from '../support/twilio-stub.ts'

/** The public name of the box. */
export const origin = 'https://box.example.com'

/** A box whose messages are carried by a stand-in for Twilio, and Ada, who has a number there. */
export async function twilioBox(env: Record<string, string> = {}) {
  const stub = await TwilioStub.start()
  const clock = movable()
  const opened = await appliance({ ...twilioSettings(stub), PILLARBOX_PUBLIC_URL: origin, ...env }, clock)
  // the public name of the box is not where the test reaches it
  const near = () => (opened.url = `http://127.0.0.1:${opened.app.httpAddresses.plain!.port}`)
  near()
  const restart = opened.restart.bind(opened)
  opened.restart = () => restart().then(() => void near())
  const { body: ada } = await opened.call('POST', '/v1/identities', { name: 'Ada', provision_phone: true, phone_country: 'US' })
  const send = async (to: string, body = 'Hello') =>
    (await opened.call('POST', `/v1/identities/${ada.id}/sms`, { to, body })).body
  const get = async (id: string) => (await opened.call('GET', `/v1/identities/${ada.id}/sms/${id}`)).body
  const becomes = async (id: string, status: string) => {
    await opened.settled()
    expect((await get(id))['status']).toBe(status)
  }
  const told = async (form: Record<string, string>, path = '/sms/twilio/inbound', more: { signature?: string | null } = {}) =>
    callback(opened.url, path, form, { signedUrl: `${origin}${path}`, ...more })
  const job = async (wanted: string) => await opened.app.jobs.find(({ name }) => name === wanted)!.run()
  return { stub, clock, opened, ada, send, get, becomes, told, job }
}

/** The messages that came to an identity, newest first. */
export const inbox = async (opened: Appliance, id: string) =>
  (await opened.call('GET', `/v1/identities/${id}/sms?direction=inbound`)).body.data
