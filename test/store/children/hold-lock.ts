import { writeSync } from 'node:fs'
import { DirectoryLock } from '../../../src/store/lock.ts'

// holds the lock of a directory until it is killed
const lock = new DirectoryLock(process.argv[2]!)
lock.note()
writeSync(1, 'locked\n')
setTimeout(() => lock.release(), 600_000)
