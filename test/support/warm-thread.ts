import { type MessagePort, parentPort } from 'node:worker_threads'
import { serve, type WorkerStart } from '../../src/mail/workers/examine.ts'
import { attachmentsOf, parse } from '../../src/message/parse.ts'

parentPort!.on('message', ({ start, port }: { start: WorkerStart; port: MessagePort }) =>
  serve({ parse, attachmentsOf }, port, start),
)
