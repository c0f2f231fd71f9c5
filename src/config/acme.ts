import { day, hour } from '../core/clock.ts'
import { both, Duration, Group, List, Listen, MailAddress, MailDomain, SecureAddress, Switch, Text, time } from './values.ts'

/** Certificates by ACME (RFC 8555). */
export const acme = Group({
  agree_terms: Switch.refine((agreed) => agreed, {
    error: 'must be true: a CA gives certificates only to those who agree to its terms of service',
  }).meta({ description: "Agree to the CA's terms of service; without that there are no certificates", example: true }),
  directory: SecureAddress.prefault('https://acme-v02.api.letsencrypt.org/directory').meta({
    description: 'The directory of the CA',
  }),
  email: MailAddress.optional().meta({
    description: 'Where the CA may write to about your account',
    example: 'admin@example.net',
  }),
  names: List(MailDomain, 'host names')
    .prefault([])
    .meta({
      description:
        'What the certificate names, if not hostname and, where the API has TLS, the host of public_url; mta-sts.<domain> of your domains have certificates of their own',
      example: ['mx.example.com', 'box.example.com'],
    }),
  listen: Listen.optional().meta({
    description: 'Where the CA looks for its challenge: port 80, if no web server has it. All else there is led to public_url',
    example: ':80',
    restart: true,
  }),
  webroot: Text('the path of a directory').optional().meta({
    description:
      'The directory that a web server on port 80 serves files from: challenges are put below .well-known/acme-challenge in it',
    directory: true,
    example: '/var/www/html',
  }),
  renew_before: Duration(hour, 90 * day)
    .prefault('30 d')
    .meta({
      description: 'How long before its end a certificate is renewed; of a short-lived one, a third of its life at most',
      unit: time,
    }),
  ca_file: Text('the path of a file').optional().meta({
    description: "PEM file with the roots that the CA's own server is checked against, of a CA that is private",
    otherwise: 'those that Node.js knows',
    file: true,
    example: 'tls/roots.pem',
  }),
  eab_key_id: Text('a key id').optional().meta({
    description: 'Whose account with the CA it is, for those that want to know (external account binding)',
    example: 'kid-1',
  }),
  eab_hmac_key: Text('a key in base64url').optional().meta({ description: 'The key that proves it, in base64url', secret: true }),
}).superRefine(both('eab_key_id', 'eab_hmac_key', 'is needed: the id and the key belong together'))
