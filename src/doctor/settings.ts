import type { Listener } from './checks/ports.ts'
import type { Pair } from './checks/certificates.ts'

/** What of the settings the doctor goes by; directories are absolute. */
export interface DoctorSettings {
  hostname: string
  domain: string
  data_dir: string
  keys_dir: string
  master_key_file: string | undefined
  min_free: number
  listeners: Listener[]
  pairs: Pair[]
  proxies: number
  mode: 'direct' | 'relay' | 'none'
  port: number
  ipv6: boolean
  strict: boolean
  acme: boolean
  bootstrap: boolean
  addresses: string[]
  blocklists: string[]
  probe_domain: string
  time_url: string | undefined
  /** Name servers; none: those of the system. */
  servers: string[]
}
