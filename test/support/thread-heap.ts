import '../../src/runtime.ts'
import { Worker } from 'node:worker_threads'

/** A program: a thread with 3 MiB for what is new makes much garbage, and says how many octets it had for it at most. */
const code = `
  const { getHeapSpaceStatistics } = require('node:v8')
  const { parentPort } = require('node:worker_threads')
  let kept = [], most = 0
  for (let number = 0; number < 500000; number += 1) {
    kept.push([number])
    if (kept.length > 50000) kept = kept.slice(25000)
    if (number % 10000 === 0) most = Math.max(most, getHeapSpaceStatistics().find((space) => space.space_name === 'new_space').space_size)
  }
  parentPort.postMessage(most)`
new Worker(code, { eval: true, resourceLimits: { maxYoungGenerationSizeMb: 3 } }).once('message', (most) => {
  process.stdout.write(`${most}\n`)
})
