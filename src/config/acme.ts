import { day, hour } from '../core/clock.ts'
import { both, Duration, Group, List, Listen, MailAddress, MailDomain, SecureAddress, Switch, Text, time } from './values.ts'

/** Certificates by ACME (RFC 8555). */
export const acme = Group({
  agree_terms: Switch.refine((agreed) => agreed, {
    error: 'must be true: a CA issues certificates only after its terms of service are accepted',
  }).meta({ description: "Accepts the CA's terms of service; required to obtain certificates", example: true }),
  directory: SecureAddress.prefault('https://acme-v02.api.letsencrypt.org/directory').meta({
    description: 'The ACME directory URL of the CA',
  }),
  email: MailAddress.optional().meta({
    description: 'Contact address of the account with the CA',
    example: 'admin@example.net',
  }),
  names: List(MailDomain, 'host names')
    .prefault([])
    .meta({
      description:
        'Host names on the certificate. Default: hostname and, where the API has TLS, the host of public_url. The mta-sts.<domain> hosts of your domains get separate certificates',
      example: ['mx.example.com', 'box.example.com'],
    }),
  listen: Listen.optional().meta({
    description:
      "Listener for the CA's HTTP challenge: port 80, unless a web server already uses it. All other requests to it are redirected to public_url",
    example: ':80',
    restart: true,
  }),
  webroot: Text('the path of a directory').optional().meta({
    description:
      'Directory from which a web server on port 80 serves files: challenges are written below .well-known/acme-challenge in it',
    directory: true,
    example: '/var/www/html',
  }),
  renew_before: Duration(hour, 90 * day)
    .prefault('30 d')
    .meta({
      description: 'Time before expiry at which a certificate is renewed; at most a third of the lifetime of a short-lived one',
      unit: time,
    }),
  ca_file: Text('the path of a file').optional().meta({
    description: 'PEM file with the root certificates that verify the server of a private CA',
    otherwise: 'the roots of Node.js',
    file: true,
    example: 'tls/roots.pem',
  }),
  eab_key_id: Text('a key id').optional().meta({
    description: 'Key id for external account binding (EAB), for CAs that require it',
    example: 'kid-1',
  }),
  eab_hmac_key: Text('a key in base64url')
    .optional()
    .meta({ description: 'HMAC key for external account binding, in base64url', secret: true }),
}).superRefine(both('eab_key_id', 'eab_hmac_key', 'is required: the id and the key belong together'))
