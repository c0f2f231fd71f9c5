import { AddressBlock, bytes, Choice, Group, List, Size, Text, WebAddress, Whole } from './values.ts'

const Country = Text('a country code of two capital letters, such as US').regex(/^[A-Z]{2}$/, {
  error: 'must be a country code of two capital letters, such as US',
})
const PhoneNumber = Text('a phone number').regex(/^\+[1-9]\d{6,14}$/, { error: 'must be a number such as +4915112345678' })

const twilio = Group({
  account_sid: Text('an account SID')
    .regex(/^AC[0-9a-f]{32}$/, { error: 'must be AC and 32 hexadecimal digits' })
    .meta({
      description: 'Account SID: AC and 32 hexadecimal digits',
      example: 'AC00000000000000000000000000000000',
      restart: true,
    }),
  auth_token: Text('the primary auth token')
    .min(16, { error: 'must be the primary auth token' })
    .meta({ description: 'Primary auth token: a secondary one does not verify callbacks', secret: true, restart: true }),
  base_url: WebAddress.prefault('https://api.twilio.com').meta({
    description: 'Base URL of the API',
    restart: true,
  }),
})

const android = Group({
  url: WebAddress.meta({
    description:
      "Base URL of the app's API: http://<phone>:8080 in local mode, https://<server>/3rdparty/v1 in private or cloud mode",
    example: 'http://192.168.1.20:8080',
    restart: true,
  }),
  user: Text('a user name').meta({ description: 'The user name that the app shows', example: 'sms', restart: true }),
  password: Text('a password').meta({ description: 'The password that the app shows', secret: true, restart: true }),
  signing_key: Text('a signing key').meta({
    description: 'The key that the app signs webhooks with (Settings, Webhooks, Signing Key)',
    secret: true,
    restart: true,
  }),
  numbers: List(PhoneNumber, 'numbers').meta({
    description: 'Phone numbers of the SIM cards, in the order of their slots',
    example: ['+4915112345678'],
    restart: true,
  }),
})

const http = Group({
  url: WebAddress.meta({
    description: 'URL to which messages are posted',
    example: 'http://127.0.0.1:9000/sms',
    restart: true,
  }),
  secret: Text('a secret of at least 16 characters')
    .min(16, { error: 'must be a secret of at least 16 characters' })
    .meta({ description: 'Secret that signs requests in both directions (Standard Webhooks)', secret: true, restart: true }),
  numbers: List(PhoneNumber, 'numbers').meta({
    description: 'Phone numbers of the bridge',
    example: ['+4915112345678'],
    restart: true,
  }),
})

/** Text messages. */
export const sms = Group({
  provider: Choice(['none', 'loopback', 'twilio', 'android', 'http'])
    .prefault('none')
    .meta({
      description:
        'SMS provider: twilio, an Android phone (android-sms-gateway), your own bridge (http), or loopback, which reaches ' +
        'only this box and is the default without a configuration file',
      restart: true,
    }),
  country: Country.prefault('US').meta({ description: 'Country of new numbers, unless the call names one' }),
  allow_countries: List(Country, 'country codes')
    .prefault([])
    .meta({ description: 'Countries that messages may be sent to; without one, all', example: ['US', 'CA'] }),
  rate_per_identity: Whole(0, 1_000_000)
    .prefault(100)
    .meta({ description: 'Sending limit of one identity; 0 means no limit', unit: 'messages an hour' }),
  media_limit: Size(1).prefault('5 MiB').meta({ description: 'Maximum size of one picture or file of a message', unit: bytes }),
  allow_networks: List(AddressBlock, 'address blocks')
    .prefault([])
    .meta({ description: 'Private networks that pictures may be fetched from', example: ['192.168.1.0/24'] }),
  twilio: twilio.optional().meta({ description: 'Twilio, with its auth token' }),
  android: android.optional().meta({ description: 'A phone with the app SMS Gateway for Android' }),
  http: http.optional().meta({ description: 'A bridge that implements the protocol of docs/sms.md' }),
})
