import '../../src/runtime.ts'
import { Worker } from 'node:worker_threads'

/** A program: a thread with 3 MiB for what is new makes much garbage, and writes the median of the bytes that it had for it. */
const code = `
  const { getHeapSpaceStatistics } = require('node:v8')
  const { parentPort } = require('node:worker_threads')
  let kept = []
  const sizes = []
  for (let number = 0; number < 500000; number += 1) {
    kept.push([number])
    if (kept.length > 50000) kept = kept.slice(25000)
    if (number % 10000 === 0) sizes.push(getHeapSpaceStatistics().find((space) => space.space_name === 'new_space').space_size)
  }
  // not the maximum: V8 exceeds the limit for a moment while it collects on a machine with other work
  parentPort.postMessage(sizes.sort((one, other) => one - other)[sizes.length >> 1])`
new Worker(code, { eval: true, resourceLimits: { maxYoungGenerationSizeMb: 3 } }).once('message', (median) => {
  process.stdout.write(`${median}\n`)
})
