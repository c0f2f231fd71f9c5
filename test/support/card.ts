import { createCipheriv, randomBytes } from 'node:crypto'

/** What a client sends to store a card, each with encrypted data of its own; `changes` are put in its place, undefined leaves out. */
export function card(changes: Record<string, unknown> = {}): Record<string, unknown> {
  const usual = {
    encrypted_data: blob(),
    last4: '4242',
    brand: 'visa',
    exp_month: 8,
    exp_year: 2039,
    card_name: 'travel',
    budget_cents: 1000,
  }
  const named = 'label' in changes ? { ...usual, card_name: undefined } : usual
  return { ...named, ...('budget' in changes ? { budget_cents: undefined } : {}), ...changes }
}

/** A card's details as a client encrypts them: 12 bytes nonce, ciphertext, 16 bytes tag, in base64. */
export function blob(text = '{"number":"4242424242424242","exp":"08/39","cvc":"123"}', key = randomBytes(32)): string {
  const nonce = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', key, nonce)
  return Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]).toString('base64')
}
