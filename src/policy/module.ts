import type { Keys } from '../accounts/keys.ts'
import type { CronJob } from '../core/cron.ts'
import type { AnyRoute } from '../http/route.ts'
import type { Config } from '../config.ts'
import type { Cascade } from '../identities/cascade.ts'
import type { Identities } from '../identities/identities.ts'
import type { Module, ModuleBasis } from '../module.ts'
import { Approvals } from './approvals.ts'
import { PolicyCheck } from './policy-check.ts'
import { HeldReveals, type HeldRevealOptions, type Kind, type Row } from './held-reveals.ts'
import { Holds } from './holds.ts'
import { Policies } from './policies.ts'
import { policyRoutes } from './routes.ts'

interface Deps extends ModuleBasis {
  identities: Identities
  cascade: Cascade
  keys: Pick<Keys, 'ends' | 'origins'>
}

/** Policies for what leaves, and what they hold for a person. */
export class PolicyModule implements Module {
  readonly name = 'policy'
  readonly routes: AnyRoute[]
  readonly policyCheck: PolicyCheck
  readonly holds: Holds
  readonly approvals: Approvals
  readonly jobs: CronJob[]
  readonly #deps: Deps
  #config: Config['policy']
  /** What the settings should say could not be read. */
  #isUnknown = false

  constructor(deps: Deps) {
    this.#deps = deps
    this.#config = deps.config.policy
    const policies = new Policies({ ...deps, ofBox: () => (this.#isUnknown ? holding(this.#config) : this.#config) })
    this.policyCheck = new PolicyCheck({ ...deps, policies })
    const holds = new Holds({ ...deps, lifetime: () => this.#config.hold_lifetime })
    this.holds = holds
    this.approvals = new Approvals(deps.clock)
    this.routes = policyRoutes(policies, holds)
    this.jobs = [
      { name: 'expire-holds', schedule: '* * * * *', run: (signal) => holds.expire(signal) },
      { name: 'clear-holds', schedule: '37 4 * * *', run: () => holds.clear() },
    ]
  }

  heldReveals<Of extends Kind, Revealed extends Row>(options: HeldRevealOptions<Of, Revealed>): HeldReveals<Of, Revealed> {
    return new HeldReveals({ ...this.#deps, holds: this.holds, approvals: this.approvals }, options)
  }

  reload(config: Config): void {
    this.#config = config.policy
    this.#isUnknown = false
  }

  refuseReload(isUnknown: (section: keyof Config) => boolean): string | undefined {
    this.#isUnknown ||= isUnknown('policy')
    return this.#isUnknown
      ? 'As policy could not be read anew, all that keys send is held until the settings are right and reloaded.'
      : undefined
  }
}

/** A policy that sends nothing. */
function holding({ rules, ...rest }: Config['policy']): Config['policy'] {
  return { ...rest, preset: 'all', rules: rules.filter(({ action }) => action !== 'send') }
}
