import { type Config, controlSocket } from './config.ts'
import type { ServedCertificate } from './http/server/listener.ts'
import type { HttpSettings } from './http/server/server.ts'

/** The settings of the HTTP server, with its certificates. */
export function httpSettings(config: Config, certificates: ServedCertificate): HttpSettings {
  const { http, metrics } = config
  return {
    listen: http.listen,
    tls: http.tls && { ...certificates, listen: http.tls.listen },
    public_url: config.public_url,
    trusted_proxies: http.trusted_proxies,
    cors_origins: http.cors_origins,
    account_rate_limit: http.account_rate_limit ?? http.rate_limit * 100,
    public_rate_limit: http.public_rate_limit,
    document_rate_limit: http.document_rate_limit,
    sign_in_rate_limit: http.sign_in_rate_limit,
    session_same_site: http.session_same_site,
    max_connections: http.max_connections,
    // a local proxy, and programs beside the box, may hold as many as they like
    uncounted: [...http.trusted_proxies, '127.0.0.0/8', '::1/128'],
    max_connections_per_address: http.max_connections_per_address,
    control: controlSocket(config),
    metrics: { listen: metrics.listen, token: metrics.token },
  }
}
