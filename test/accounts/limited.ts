import { loadConfig } from '../../src/config.ts'
import type { Subscription } from '../../src/accounts/model.ts'
import type { Planned } from '../../src/core/planned.ts'
import type { Answer, Appliance } from '../support/appliance.ts'

/** Reads the settings again with these limits in them, as HUP does. */
export async function limit(box: Appliance, limits: { [What in Planned]?: number }): Promise<void> {
  await box.app.reload(await loadConfig({ env: { ...box.env, ...limitsAsEnv(limits) }, cwd: box.directory }))
}

/** The settings with these limits, as the environment gives them. */
export function limitsAsEnv(limits: { [What in Planned]?: number }): Record<string, string> {
  return Object.fromEntries(
    Object.entries(limits).map(([what, most]) => [`PILLARBOX_LIMITS__${what.toUpperCase()}`, String(most)]),
  )
}

export async function subscription(box: Appliance, key = box.key): Promise<Subscription> {
  const { status, body } = await box.call<Subscription>('GET', '/v1/billing/subscription', undefined, { key })
  if (status !== 200) throw new Error(`no subscription: ${JSON.stringify(body)}`)
  return body
}

export async function usage(box: Appliance, what: Planned): Promise<number> {
  return (await subscription(box)).usage[what]
}

/** Whether it was refused by the plan; what else it may be fails the test. */
export function refused({ status, body }: Answer<{ error?: Record<string, unknown> }>): string | null {
  if (status === 200 || status === 201) return null
  if (status === 403 && body.error?.['code'] === 'plan_limit_reached') return String(body.error['message'])
  throw new Error(`${status} ${JSON.stringify(body)}`)
}
