import * as z from 'zod'
import type { Scope } from '../../core/scopes.ts'

/** The scopes that a person can grant: those of an identity; never of the account, nor of cards. */
export const offered = {
  'identities:read': 'Read your profile, get codes of your one-time passwords, and your logins with their passwords',
  'identities:write': 'Change your profile, and prove to others who you are (identity tokens)',
  'messages:read': 'Read your e-mails and text messages, with the codes and links in them',
  'messages:write': 'Send e-mails and text messages as you; mark and delete messages',
  'emails:read': 'Read your e-mails',
  'emails:write': 'Send e-mails as you; mark and delete e-mails',
  'sms:read': 'Read your text messages',
  'sms:write': 'Send text messages as you; mark and delete them',
} satisfies Partial<Record<Scope, string>>
export type Offered = keyof typeof offered

/** The scopes of a client that asks for none. */
export const usual: Offered[] = ['identities:read', 'messages:read', 'messages:write']

const scopesSupported = z.array(z.string())

/** RFC 9728. */
export const ProtectedResource = z
  .object({
    resource: z.string().meta({ description: 'the audience of tokens' }),
    resource_name: z.string(),
    authorization_servers: z.array(z.string()),
    scopes_supported: scopesSupported,
    bearer_methods_supported: z.array(z.literal('header')),
  })
  .meta({ id: 'ProtectedResource' })

/** RFC 8414. */
export const AuthorizationServer = z
  .object({
    issuer: z.string(),
    authorization_endpoint: z.string(),
    token_endpoint: z.string(),
    revocation_endpoint: z.string(),
    registration_endpoint: z.string(),
    scopes_supported: scopesSupported,
    response_types_supported: z.array(z.literal('code')),
    grant_types_supported: z.array(z.enum(['authorization_code', 'refresh_token'])),
    code_challenge_methods_supported: z.array(z.literal('S256')),
    token_endpoint_auth_methods_supported: z.array(z.literal('none')),
    revocation_endpoint_auth_methods_supported: z.array(z.literal('none')),
    client_id_metadata_document_supported: z.boolean(),
    authorization_response_iss_parameter_supported: z.boolean(),
  })
  .meta({ id: 'AuthorizationServer' })

const Uri = z.string().min(1).max(512)

/** What a client says of itself, in its metadata document or when it registers (RFC 7591); what else it says is ignored. */
export const ClientMetadata = z.object({
  client_id: z.string().optional(),
  client_name: z.string().max(200).optional(),
  redirect_uris: z.array(Uri).min(1).max(10),
  token_endpoint_auth_method: z.string().optional(),
})
export type ClientMetadata = z.output<typeof ClientMetadata>
