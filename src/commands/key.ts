import type { Command } from 'commander'
import type { ApiKey, KeyRevoked } from '../accounts/model.ts'
import {
  type Box,
  type BoxOptions,
  everyOne,
  identityNamed,
  ofBox,
  onBox,
  openedExclusively,
  type Printed,
  whichIdentity,
} from './support/box.ts'
import { Failure } from './support/refuse.ts'
import { say, table } from './support/say.ts'
import { wholeNumber } from './support/whole-number.ts'

const which = 'its id or label'

/** `pillarbox key …`. Throws a sentence when there is no box, or its key cannot be changed (for `rotate-master` also while it runs). */
export function addKeyCommand(program: Command): void {
  const key = program.command('key').description('API keys, and the keys of the box itself')
  const add = (name: string, words: string): Command => ofBox(key.command(name).description(words))
  add('list', 'list all API keys of an account, masked').action(onBox(list))
  add('create', 'create an API key, and print it once')
    .option('--label <label>', 'its purpose', 'unnamed')
    .option('--scope <scope...>', 'its scopes (default: all)')
    .option('--identity <identity>', `bind it to one identity: ${whichIdentity}`)
    .option('--expires <time>', 'time of expiry: an ISO 8601 time such as 2027-01-31T00:00:00Z')
    .option('--rate-limit <calls>', 'calls a minute; 0 is no limit (default: from the settings)', wholeNumber(0))
    .action(onBox(create))
  add('rotate', 'rotate the secret of an API key, and print the new one once')
    .argument('<key>', which)
    .option('--grace <seconds>', 'time for which the old secret stays valid', wholeNumber(0), 0)
    .action(onBox(rotate))
  add('revoke', 'revoke an API key, and end what was created with it')
    .argument('<key>', which)
    .option('--keep', 'keep what was created with it: keys, webhooks, jobs, scheduled e-mails')
    .action(onBox(revoke))
  const master = key
    .command('rotate-master')
    .description('replace the master key, and re-encrypt all secrets with it; the box must be stopped')
  ofBox(master, { account: false }).action(rotateMaster)
  const signing = key
    .command('rotate-signing')
    .description('rotate the key that signs identity tokens and credentials; the box may run')
    .option('--now', 'replace all keys because they may have leaked. Everything they signed becomes invalid')
  ofBox(signing).action(onBox(rotateSigning))
}

async function list(box: Box): Promise<Printed> {
  const keys = await everyOne<ApiKey>(box, '/v1/api-keys')
  const rows = keys.map(({ id, label, key_prefix, scopes, identity_id, last_used_at }) => [
    id,
    label,
    `${key_prefix}…`,
    identity_id ?? '',
    last_used_at ?? 'never',
    scopes.join(' '),
  ])
  return [keys, table(['ID', 'LABEL', 'KEY', 'IDENTITY', 'LAST USED', 'SCOPES'], rows)]
}

interface NewKey {
  label: string
  scope?: string[]
  identity?: string
  expires?: string
  rateLimit?: number
}

async function create(box: Box, { label, scope, identity, expires, rateLimit }: NewKey): Promise<Printed> {
  const made = await box.call<ApiKey & { key: string }>('POST', '/v1/api-keys', {
    label,
    scopes: scope,
    identity_id: identity === undefined ? undefined : (await identityNamed(box, identity)).id,
    expires_at: expires,
    rate_limit: rateLimit,
  })
  return [made, `${made.key}\n\nThis is the key ${made.id} (${made.label}), shown only once.`]
}

async function rotate(box: Box, who: string, { grace }: { grace: number }): Promise<Printed> {
  const { id } = await named(box, who)
  const turned = await box.call<ApiKey & { key: string }>('POST', `/v1/api-keys/${id}/rotate`, { grace_seconds: grace })
  const former = grace === 0 ? 'The old secret no longer works.' : `The old secret works for another ${grace} s.`
  return [turned, `${turned.key}\n\nThis is the key ${turned.id} (${turned.label}), shown only once. ${former}`]
}

async function revoke(box: Box, who: string, { keep }: { keep?: boolean }): Promise<Printed> {
  const { id, label } = await named(box, who)
  const revoked = await box.call<KeyRevoked>('DELETE', `/v1/api-keys/${id}${keep ? '?keep=true' : ''}`)
  const ended = Object.entries(revoked.ended)
    .filter(([, count]) => count > 0)
    .map(([what, count]) => `${what.replace('api_keys', 'API keys').replace('_', ' ')}: ${count}`)
  const words = `The key ${id} (${label}) was revoked.`
  return [revoked, ended.length === 0 ? words : `${words} This also ended ${ended.join(', ')}.`]
}

/** Throws Failure when there is none, or several have this label. */
async function named(box: Box, who: string): Promise<ApiKey> {
  const keys = await everyOne<ApiKey>(box, '/v1/api-keys')
  const found = keys.filter(({ id, label }) => id === who || label === who)
  if (found.length === 1) return found[0]!
  throw found.length === 0
    ? new Failure(`The account has no key ${who}. List the keys: pillarbox key list`, 'not_found', 'key')
    : new Failure(`${found.length} keys have the label ${who}; specify one by its id: pillarbox key list`, 'ambiguous', 'key')
}

async function rotateMaster(options: BoxOptions): Promise<void> {
  const rotated = await openedExclusively(options, (app) => app.rotateMasterKey())
  const words = `The master key was replaced, and ${rotated.values} values were re-encrypted. The former key is kept in ${rotated.former}: earlier backups can be opened only with it. Remove it once there are none.`
  say(options, rotated, words)
}

async function rotateSigning(box: Box, { now = false }: { now?: boolean }): Promise<Printed> {
  const rotated = await box.call<{ kid: string }>('POST', '/v1/signing-keys/rotate', { now })
  const rest = now
    ? 'All keys were replaced: signatures of the former keys are no longer valid, on other servers after at most five minutes.'
    : 'Signatures of the former key stay valid until they expire.'
  return [rotated, `The key ${rotated.kid} signs from now on. ${rest}`]
}
