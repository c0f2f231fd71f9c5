/** What can be wrong with a bucket; `missing` is an object that is not there. */
type FailureKind =
  | 'unreachable'
  | 'busy'
  | 'wrong_key'
  | 'denied'
  | 'no_bucket'
  | 'clock'
  | 'region'
  | 'missing'
  | 'damaged'
  | 'other'

/** A request to the store of objects that failed, as a sentence. */
export class BucketFailure extends Error {
  readonly kind: FailureKind

  constructor(kind: FailureKind, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'BucketFailure'
    this.kind = kind
  }

  /** True if the settings or the clock are wrong: it does not end by itself. */
  get lasting(): boolean {
    return ['wrong_key', 'denied', 'no_bucket', 'clock', 'region'].includes(this.kind)
  }
}

/** The remedy of a failure. */
export const remedies: Record<FailureKind, string> = {
  unreachable: 'Start the store, or correct blobs.s3.endpoint; look at the network and the firewall between.',
  busy: 'Look at the load and the log of the store. Mail above blobs.s3.above is deferred meanwhile.',
  wrong_key: 'Correct blobs.s3.access_key_id and blobs.s3.secret_access_key, and restart the box.',
  denied: 'Allow the access key to read, write and delete objects of the bucket: s3:GetObject, s3:PutObject, s3:DeleteObject.',
  no_bucket: 'Create the bucket at the store, or correct blobs.s3.bucket and restart the box.',
  clock: 'Synchronize the clock of this machine: timedatectl set-ntp true; and that of the store.',
  region: 'Correct blobs.s3.region and blobs.s3.endpoint, and restart the box.',
  missing: 'Restore the object at the store, or correct blobs.s3.bucket and restart the box.',
  damaged: 'Restore the object at the store, and look at its disks.',
  other: 'Look at the log of the store.',
}

/** The codes of errors (Amazon S3 API Reference, "Error responses") that say more than their status. */
const kinds: Record<string, FailureKind> = {
  InvalidAccessKeyId: 'wrong_key',
  SignatureDoesNotMatch: 'wrong_key',
  XAdminUserNotFound: 'wrong_key',
  AccessDenied: 'denied',
  AllAccessDisabled: 'denied',
  NoSuchBucket: 'no_bucket',
  InvalidBucketName: 'no_bucket',
  NoSuchKey: 'missing',
  RequestTimeTooSkewed: 'clock',
  AuthorizationHeaderMalformed: 'region',
  PermanentRedirect: 'region',
  IllegalLocationConstraintException: 'region',
  SlowDown: 'busy',
  ServiceUnavailable: 'busy',
  InternalError: 'busy',
  RequestTimeout: 'busy',
}

const sentences: Partial<Record<FailureKind, string>> = {
  busy: 'The store of objects could not do it',
  wrong_key: 'The store of objects does not accept the access key or its secret',
  denied: 'The store of objects does not allow this to the access key',
  no_bucket: 'The store of objects has no such bucket',
  clock: 'The clocks of this machine and of the store of objects differ too much',
  region: 'The bucket is in another region, or at another endpoint',
  missing: 'The store of objects does not have the object',
}

/** The failure that a response reports; undefined for a success. */
export function failureOf(status: number, body: Buffer): BucketFailure | undefined {
  if (status >= 200 && status < 300) return undefined
  const code = /<Code>(\w{1,100})<\/Code>/.exec(body.toString('utf8', 0, 4096))?.[1] ?? ''
  const kind = kinds[code] ?? kindOf(status)
  const said = code === '' ? `status ${status}` : `${code}, status ${status}`
  return new BucketFailure(kind, `${sentences[kind] ?? 'The store of objects gave an unexpected answer'} (${said}).`)
}

function kindOf(status: number): FailureKind {
  if (status >= 500 || status === 429 || status === 408) return 'busy'
  if (status === 401 || status === 403) return 'denied'
  return status >= 300 && status < 400 ? 'region' : 'other'
}
