import { parentPort } from 'node:worker_threads'
import type { MessagePort } from 'node:worker_threads'
import { serve } from '../../src/mail/examine.ts'
import type { Start } from '../../src/mail/examine.ts'
import { attachment, parse } from '../../src/mail/parse.ts'

parentPort!.on('message', ({ start, port }: { start: Start; port: MessagePort }) => serve({ parse, attachment }, port, start))
