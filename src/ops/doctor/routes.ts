import { type AnyRoute, route } from '../../http/route.ts'
import type { Doctor } from './doctor.ts'
import { DoctorReport } from './model.ts'

const tag = 'Doctor'

export function routes(doctor: Doctor): AnyRoute[] {
  return [
    route({
      method: 'GET',
      path: '/doctor',
      scope: 'account:read',
      operator: true,
      tag,
      summary: 'Get the last results of the doctor',
      description:
        'The health of the box, line by line; each problem has a remedy. Checks run automatically: local ones every 5 minutes, those that contact other servers every 6 hours.',
      reply: DoctorReport,
      timeout: 60_000,
      handle: () => doctor.report(),
    }),
    route({
      method: 'POST',
      path: '/doctor',
      scope: 'account:write',
      reads: ['account:read'],
      operator: true,
      tag,
      summary: 'Run all checks of the doctor',
      description: 'Runs every check, which may take half a minute, and returns the lines. Concurrent calls share one run.',
      reply: DoctorReport,
      // also with a full disk, when it is needed most
      stores: false,
      timeout: 60_000,
      handle: () => doctor.run(),
    }),
  ]
}
