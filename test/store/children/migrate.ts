import { writeSync } from 'node:fs'
import { prepare } from '../../../src/store/migrate.ts'

// migrates a database with the migrations of a folder
const [file = '', folder = ''] = process.argv.slice(2)
writeSync(1, 'starting\n')
prepare(file, true, folder)
writeSync(1, 'done\n')
