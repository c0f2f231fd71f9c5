import { type AnyRoute, routeOf } from '../../http/route.ts'
import type { Doctor } from './doctor.ts'
import { DoctorReport } from './model.ts'

const route = routeOf('Doctor')

export function routes(doctor: Doctor): AnyRoute[] {
  return [
    route('GET', '/doctor', {
      scope: 'account:read',
      operator: true,
      sdk: 'doctor.get',
      summary: 'Get the last results of the doctor',
      description:
        'The health of the box, line by line; each problem has a remedy. Checks run automatically: local ones every 5 minutes, those that contact other servers every 6 hours. Where several boxes use one database, each has lines of its machine, with its name as box.',
      reply: DoctorReport,
      timeout: 60_000,
      handle: () => doctor.report(),
    }),
    route('POST', '/doctor', {
      scope: 'account:write',
      alsoScope: ['account:read'],
      operator: true,
      sdk: 'doctor.run',
      summary: 'Run all checks of the doctor',
      description:
        'Runs every check, which may take half a minute, and returns the lines. Concurrent calls share one run. Of the machines of other boxes on the database the lines are those of their last checks.',
      reply: DoctorReport,
      // also with a full disk, when it is needed most
      stores: false,
      timeout: 60_000,
      handle: () => doctor.run(),
    }),
  ]
}
