import type { Basis } from '../../basis.ts'
import type { DomainStatusReport } from '../../domains/status.ts'
import type { SendingRights } from '../../domains/sending.ts'
import type { BackupDirectorySettings } from '../backup/backup-directory.ts'
import type { Endpoint } from './conversation.ts'
import type { ExternalView } from './external-view.ts'

export interface ListenerEndpoint extends Endpoint {
  protocol: 'smtp' | 'submission' | 'submissions' | 'http' | 'https'
}

/** A configured certificate and its key. */
export interface ConfiguredPair {
  /** The group of settings: `smtp.tls`. */
  setting: string
  cert: string
  key: string
  /** The name that it must contain. */
  name: string
}

/** The settings of the doctor; directories are absolute. */
export interface DoctorSettings {
  hostname: string
  /** Domain of new addresses. */
  domain: string
  data_dir: string
  keys_dir: string
  master_key_file: string | undefined
  /** Free bytes below which the box refuses new data. */
  min_free: number
  listeners: ListenerEndpoint[]
  pairs: ConfiguredPair[]
  proxies: number
  /** Networks from which a connection begins with a PROXY protocol header; this machine may be in them. */
  proxy_protocol: { http: readonly string[]; smtp: readonly string[] }
  /** How mail leaves: directly, by a relay, or not at all. */
  mode: 'direct' | 'relay' | 'none'
  port: number
  ipv6: boolean
  /** True if MTA-STS enforcement requires a trusted certificate. */
  strict: boolean
  /** True if ACME provides certificates without configured files. */
  acme: boolean
  backup: BackupDirectorySettings
  bootstrap_key: string | undefined
  addresses: string[]
  blocklists: string[]
  /** The domain whose server is probed while no mail was delivered recently. */
  probe_domain: string
  /** A server whose `Date` is compared; without one the synchronization of the machine's clock is checked. */
  time_url: string | undefined
  /** Name servers; empty: those of the system. */
  servers: string[]
}

/** Replaces the machine in tests. */
export interface DoctorTest {
  /** The result of `statfs`. */
  measure?: (path: string) => Promise<{ bsize: number; bavail: number; blocks: number; files: number; ffree: number }>
  /** Runs a program; returns its output, or rejects. */
  run?: (program: string, parameters: string[]) => Promise<string>
  versions?: Record<string, string>
}

/** What the checks of settings, files, ports and the DNS are made from, which work whether or not the box can be opened. */
export interface OuterContext {
  settings: DoctorSettings
  externalView: ExternalView
  now: () => number
  publicUrl: () => string
  version: string
  /** The current listeners; undefined while the box does not run. */
  present: () => ListenerEndpoint[] | undefined
  testing?: DoctorTest | undefined
  /** The time of the server at `time_url`, in milliseconds. */
  elsewhere?: (() => Promise<number>) | undefined
  /** The time of the latest known event, in milliseconds; undefined without one. */
  newest?: () => Promise<number | undefined>
  /** Earlier free bytes with their times in milliseconds, oldest first; stores the current value. */
  history?: (free: number) => Promise<{ at: number; free: number }[]>
}

/** What other modules tell about an open box. */
export interface BoxSources {
  state: { readonly data: { created_at: string; accounts: readonly { id: string }[] } }
  /** The DNS status of hosted domains; `fresh` checks now. */
  lookUpDomains: (fresh: boolean) => Promise<DomainStatusReport[]>
  /** Connects to the mail server of a domain; returns its host, and throws why none answered. */
  probe: (domain: string, signal: AbortSignal) => Promise<string>
  /** True if the domain is hosted here. */
  isOurs: (domain: string) => boolean
  /** Where mail from the box's own domain can be sent. */
  sendingRights: () => SendingRights
  /** A stored answer to a delivery of this kind in words, without what an endpoint answered, which may repeat what it was sent. */
  answerText: (kind: string, answer: string) => string
  /** The id of this key, if it is valid. */
  keyOf: (key: string) => Promise<string | undefined>
  /** The SMS provider; `check` tries the connection and the credentials, and throws a sentence. */
  carrier: { name: string; capabilities: { receives_otp: boolean }; check?(signal: AbortSignal): Promise<void> } | undefined
  /** The store of objects that has large e-mails; `check` writes, reads and deletes an object, and throws BucketFailure. */
  objects: { check(): Promise<void> } | undefined
  /** Why reports to other domains cannot be sent, and the fix; null when they can, undefined when they are off. */
  reports: () => { why: string; fix: string } | null | undefined
  /** Throws a sentence when the directory cannot be read. */
  newestBackup: (settings: BackupDirectorySettings) => Promise<{ name: string; created_at: string; keys: boolean } | undefined>
}

/** What the checks of an open box are made from. */
export interface BoxContext extends OuterContext, BoxSources, Pick<Basis, 'database' | 'account'> {
  running: () => boolean
}
