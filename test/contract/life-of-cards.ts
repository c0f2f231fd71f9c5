import { expect } from 'vitest'
import type { Appliance } from '../support/appliance.ts'
import { blob, card } from '../support/card.ts'

/** Cards that are stored, revealed, refused, frozen and cancelled; the octets of each, by what became of them. Bob's goes with him. */
export async function liveWithCards(
  box: Appliance,
  ada: string,
  bob: string,
  wrong: (...call: Parameters<Appliance['call']>) => Promise<void>,
): Promise<{ kept: Buffer[]; destroyed: Buffer[]; refused: Buffer[] }> {
  const [held, frozen, cancelled, ofBob, misspelt, expired] = Array.from({ length: 6 }, () => blob()) as [string, ...string[]]
  const cards = `/v1/identities/${ada}/cards`
  const store = async (encrypted_data: string, path = cards): Promise<string> =>
    `/v1/cards/${(await box.call('POST', path, card({ encrypted_data }), { headers: { 'Idempotency-Key': encrypted_data.slice(-8) } })).body.id}`
  const paths = [
    await store(held),
    await store(frozen!),
    await store(cancelled!),
    await store(ofBob!, `/v1/identities/${bob}/cards`),
  ]
  for (const path of paths) {
    for (const turn of [1, 2]) {
      const options = { headers: { 'Idempotency-Key': 'reveal', 'User-Agent': `turn ${turn}` } }
      expect((await box.call('POST', `${path}/reveal`, { amount_cents: 10 }, options)).body['encrypted_data']).toHaveLength(
        held.length,
      )
      expect((await box.call('GET', `${path}/reveal?amount_cents=10`, undefined, options)).status).toBe(200)
    }
    await wrong('POST', `${path}/reveal`, { amount_cents: 5000 }, { headers: { 'Idempotency-Key': 'too much' } })
  }
  await box.call('POST', `${paths[1]}/freeze`)
  await wrong('POST', `${paths[1]}/reveal`, {}, { headers: { 'Idempotency-Key': 'reveal of a frozen one' } })
  await box.call('POST', `${paths[2]}/cancel`)
  await wrong('GET', `${paths[2]}/reveal?amount_cents=10`, undefined, { headers: { 'Idempotency-Key': 'reveal' } })
  await wrong('POST', cards, card({ encrypted_data: misspelt, encrypted_date: misspelt }))
  await wrong('POST', cards, card({ encrypted_data: expired, exp_year: 2020 }), { headers: { 'Idempotency-Key': 'expired' } })
  return { kept: octetsOf(held, frozen), destroyed: octetsOf(cancelled, ofBob), refused: octetsOf(misspelt, expired) }
}

function octetsOf(...texts: (string | undefined)[]): Buffer[] {
  return texts.map((text) => Buffer.from(text!, 'base64'))
}
