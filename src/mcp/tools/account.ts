import type { Page } from '../../core/shapes.ts'
import type { Domain } from '../../domains/model.ts'
import type { Identity, ReducedIdentity } from '../../identities/model.ts'
import type { DoctorReport } from '../../ops/doctor/model.ts'
import { AnswerText } from '../answer-text.ts'
import { tool, type Tool } from '../tool.ts'

const identities = 'GET /identities'
const create = 'POST /identities'
const domains = 'GET /domains'
const doctor = 'GET /doctor'
const reads = { readOnlyHint: true, openWorldHint: false }

/** The tools of keys that are not bound to one identity. */
export const accountTools: Tool[] = [
  tool('list_identities', {
    description: 'List the identities of the account.',
    annotations: reads,
    routes: [identities],
    account: true,
    run: async ({ call }, { query, cursor }) => {
      const given = { limit: '25', ...(query === undefined ? {} : { query }), ...(cursor === undefined ? {} : { cursor }) }
      const { data, next_cursor } = await call<Page<ReducedIdentity>>(identities, { query: given })
      const text = new AnswerText()
      for (const { id, email, phone_number, status, name } of data) {
        text.line(`${id} ${email}${phone_number === null ? '' : ` ${phone_number}`} ${status}`)
        text.foreign(`${id} name: `, name, 60)
      }
      if (data.length === 0) text.line('No identities.')
      return {
        text: text.toString(next_cursor === null ? [] : [`More: cursor ${next_cursor}`]),
        data: { ids: data.map(({ id }) => id), next_cursor },
      }
    },
  }),
  tool('create_identity', {
    description: 'Create an identity with an e-mail address, which is permanent.',
    annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
    routes: [create],
    account: true,
    example: { name: 'Ada' },
    names: { email_username: 'username', email_domain: 'domain' },
    run: async ({ call }, { name, username, domain, expires_at }) => {
      const body = {
        ...(name === undefined ? {} : { name }),
        ...(username === undefined ? {} : { email_username: username }),
        ...(domain === undefined ? {} : { email_domain: domain }),
        ...(expires_at === undefined ? {} : { expires_at }),
      }
      const { id, email } = await call<Identity>(create, { body })
      return { text: `${id} ${email}`, data: { id, email } }
    },
  }),
  tool('list_domains', {
    description: 'List the domains and whether they are verified.',
    annotations: reads,
    routes: [domains],
    account: true,
    run: async ({ call }, { cursor }) => {
      const { data, next_cursor } = await call<Page<Domain>>(domains, {
        query: { limit: '50', ...(cursor === undefined ? {} : { cursor }) },
      })
      const text = new AnswerText()
      for (const { id, name, status } of data) text.foreign(`${id} `, `${name} ${status}`)
      if (data.length === 0) text.line('No domains.')
      return { text: text.toString(next_cursor === null ? [] : [`More: cursor ${next_cursor}`]), data: { next_cursor } }
    },
  }),
  tool('get_doctor', {
    description: 'The health of the box: problems and their remedies.',
    annotations: reads,
    routes: [doctor],
    account: true,
    run: async ({ call }) => {
      const { lines } = await call<DoctorReport>(doctor)
      const text = new AnswerText()
      const wrong = lines.filter(({ status }) => status !== 'pass')
      text.line(`${lines.length - wrong.length} checks pass, ${wrong.length} do not.`)
      // what others' servers answered is in it
      for (const { name, subject, status, message, fix } of wrong) {
        if (!text.foreign(`${status} ${name} ${subject}: `, `${message}${fix === null ? '' : ` Remedy: ${fix}`}`, 600)) break
      }
      return { text: text.toString(), data: { problems: wrong.length } }
    },
  }),
]
