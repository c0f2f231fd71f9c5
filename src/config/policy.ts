import { day, hour } from '../core/clock.ts'
import { Fault } from '../core/fault.ts'
import { actions, checkedPolicy, maxRules, type Policy, presets, Rule } from '../core/policy.ts'
import { Choice, Duration, Group, List, Switch, time } from './values.ts'

/** What may leave the box. */
export const policy = Group({
  preset: Choice(presets).prefault('open').meta({
    description:
      'For what no rule matches: open sends all; known sends to recipients of the same account and to those who wrote before, and holds the rest; all holds everything. The policy of an account or identity can only be stricter',
  }),
  rules: List(Rule, 'rules')
    .max(maxRules)
    .prefault([])
    .meta({
      description: `Rules for what keys send: the first whose condition (when) holds for a recipient says what becomes of it (action: ${actions.join(', ')}); docs/policy.md has all conditions`,
      example: [{ when: { found: ['secret', 'card'] }, action: 'refuse' }],
    }),
  hold_lifetime: Duration(hour, 30 * day)
    .prefault('3 d')
    .meta({ description: 'Time after which what is held is rejected if nobody decided', unit: time }),
  digest: Switch.prefault(false).meta({
    description:
      'Mails what is held to the owners and approvers of its account, when there is something new and at most once an hour, at the addresses they sign in with; the links in it lead to a page with buttons that decide without signing in',
  }),
}).superRefine((found, context) => {
  try {
    Object.assign(found, checkedPolicy(found as Policy))
  } catch (error) {
    if (!(error instanceof Fault) || error.param === undefined) throw error
    const path = error.param.split('.').map((step) => (/^\d+$/.test(step) ? Number(step) : step))
    context.addIssue({ code: 'custom', path, message: error.message })
  }
})
