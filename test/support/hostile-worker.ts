import { serve } from '../../src/mail/workers/examine.ts'
import { attachmentsOf, parse } from '../../src/message/parse.ts'

/** The real worker, with a parser that some subjects are too much for. */
serve({
  attachmentsOf,
  async parse(raw) {
    const subject = /^Subject: (.*)\r$/m.exec(raw.toString('latin1'))?.[1]
    if (subject === 'spin') for (;;);
    if (subject === 'never') await new Promise(() => undefined)
    if (subject === 'exit') process.exit(3)
    if (subject === 'throw') throw new Error('cannot be read\r\nat all')
    if (subject === 'hoard') {
      const hoard: string[][] = []
      for (let index = 0; ; index++) hoard.push(Array.from({ length: 1000 }, (_, item) => `${index} ${item}`))
    }
    return parse(raw)
  },
})
