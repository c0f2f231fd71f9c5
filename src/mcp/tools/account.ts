import type { Page } from '../../core/shapes.ts'
import type { Domain } from '../../domains/model.ts'
import type { Identity, ReducedIdentity } from '../../identities/model.ts'
import type { DoctorReport } from '../../ops/doctor/model.ts'
import type { HoldRow } from '../../policy/model.ts'
import { AnswerText } from '../answer-text.ts'
import { present, tool, type Tool } from '../tool.ts'
import { listed } from './reading.ts'

const identities = 'GET /identities'
const create = 'POST /identities'
const domains = 'GET /domains'
const holds = 'GET /holds'
const doctor = 'GET /doctor'
const reads = { readOnlyHint: true, openWorldHint: false }

/** The tools of keys that are not bound to one identity. */
export const accountTools: Tool[] = [
  tool('list_identities', {
    description: 'List the identities of the account.',
    annotations: reads,
    routes: [identities],
    account: true,
    run: ({ call }, { query, cursor }) =>
      listed(
        (limit) => call<Page<ReducedIdentity>>(identities, { query: present({ query, cursor, limit: String(limit) }) }),
        25,
        (text, _, { id, email, phone_number, status, name }) => {
          text.line(`${id} ${email}${phone_number === null ? '' : ` ${phone_number}`} ${status}`)
          return text.foreign(`${id} name: `, name, 60)
        },
        'No identities.',
      ),
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
    run: ({ call }, { cursor }) =>
      listed(
        (limit) => call<Page<Domain>>(domains, { query: present({ cursor, limit: String(limit) }) }),
        50,
        (text, _, { id, name, status }) => text.foreign(`${id} `, `${name} ${status}`),
        'No domains.',
      ),
  }),
  tool('list_holds', {
    description: 'List what waits for a person to approve it.',
    annotations: reads,
    routes: [holds],
    account: true,
    run: ({ call }, { cursor }) =>
      listed(
        (limit) => call<Page<HoldRow>>(holds, { query: present({ cursor, limit: String(limit) }) }),
        25,
        (text, _, { id, kind, about, identity_id, created_at, expires_at }) => {
          text.line(`${id} ${kind} ${about} of ${identity_id}, held ${created_at}, rejected ${expires_at} if nobody decides`)
          return true
        },
        'Nothing is held.',
      ),
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
      for (const { name, subject, status, message, fix, box } of wrong) {
        const where = box === undefined ? '' : `${box}: `
        if (!text.foreign(`${status} ${name} ${where}${subject}: `, `${message}${fix === null ? '' : ` Remedy: ${fix}`}`, 600))
          break
      }
      return { text: text.toString(), data: { problems: wrong.length } }
    },
  }),
]
