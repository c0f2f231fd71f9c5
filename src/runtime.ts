import { setFlagsFromString } from 'node:v8'

// Imported before everything else: what it sets holds only for what comes after it.

const [major] = process.versions.node.split('.')
if (major !== '24') {
  process.stderr.write(`Pillarbox runs on Node.js 24, not ${process.versions.node}. Use npm start, which includes its own.\n`)
  process.exit(78)
}

// the option that this thread was started with would hold for all threads, whatever their `resourceLimits` say
setFlagsFromString('--max-semi-space-size=0')
