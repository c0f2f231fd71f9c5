/** A server of the operator's that passes mail on; `none` is without TLS, and then nobody logs in. */
export interface Relay {
  host: string
  port: number
  tls: 'starttls' | 'implicit' | 'none'
  user?: string | undefined
  password?: string | undefined
}

/** How mail leaves, as the operator set it. */
export interface OutboundSettings {
  /** Our own name, as other servers know us. */
  hostname: string
  mode: 'direct' | 'relay' | 'none'
  relay?: Relay | undefined
  relays: (Relay & { domains: string[] })[]
  port: number
  allow_networks: string[]
  ipv6: boolean
  mta_sts: boolean
  dane: boolean
  dns: { servers: string[]; timeout: number }
}
