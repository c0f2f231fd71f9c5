import { type AnyRoute, routeOf } from '../../http/route.ts'
import type { Doctor } from './doctor.ts'
import { DoctorReport } from './model.ts'

const route = routeOf('Doctor')

export function routes(doctor: Doctor): AnyRoute[] {
  return [
    route('GET', '/doctor', {
      scope: 'account:read',
      operator: true,
      summary: 'Get what the doctor saw last',
      description:
        'The health of the box, line by line: what is not well comes with what mends it. Checks run by themselves, cheap ones every 5 minutes, those that ask others every 6 hours.',
      reply: DoctorReport,
      timeout: 60_000,
      handle: () => doctor.report(),
    }),
    route('POST', '/doctor', {
      scope: 'account:write',
      reads: ['account:read'],
      operator: true,
      summary: 'Have the doctor look now',
      description:
        'Runs every check, which may take half a minute, and answers the lines. Who asks meanwhile gets the same answer.',
      reply: DoctorReport,
      // also with a full disk, when it is needed most
      stores: false,
      timeout: 60_000,
      handle: () => doctor.run(),
    }),
  ]
}
