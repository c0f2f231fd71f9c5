export { type CardDetails, type CardKey, decryptCard, encryptCard, newCardKey } from './cards.ts'
export { Pillarbox, type PillarboxOptions, type PlainCard } from './client.ts'
export {
  ConflictError,
  ConnectionError,
  ForbiddenError,
  InvalidRequestError,
  NotFoundError,
  PillarboxError,
  RateLimitedError,
  ServerError,
  TimeoutError,
  UnauthorizedError,
} from './errors.ts'
export { type EventOptions, EventStream } from './events.ts'
export { type Methods, methods } from './methods.ts'
export type { RequestOptions } from './request.ts'
export type * from './types.ts'
export type { Arrived, WaitOptions } from './wait.ts'
export { verifyWebhook } from './webhooks.ts'
