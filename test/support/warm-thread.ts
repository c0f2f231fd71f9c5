import { type MessagePort, parentPort } from 'node:worker_threads'
import { serve, type Start } from '../../src/mail/workers/examine.ts'
import { attachment, parse } from '../../src/message/parse.ts'

parentPort!.on('message', ({ start, port }: { start: Start; port: MessagePort }) => serve({ parse, attachment }, port, start))
