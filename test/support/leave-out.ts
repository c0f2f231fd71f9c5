import { relative } from 'node:path'
import { beforeEach } from 'vitest'
import { reasonToLeaveOut } from './sqlite-only.ts'

beforeEach((context) => {
  const reason = reasonToLeaveOut(relative(process.cwd(), context.task.file.filepath), context.task.name)
  if (reason !== undefined) context.skip(reason)
})
