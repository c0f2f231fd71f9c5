/** A value of JSON. */
export type Json = null | boolean | number | string | Json[] | JsonObject

export interface JsonObject {
  [key: string]: Json
}

/** A parameter, header or response, or a reference to one of the components. */
export type Described = JsonObject & { $ref?: string; description?: string }

export interface Operation {
  operationId: string
  tags: string[]
  summary: string
  description: string
  security?: Json
  parameters?: Described[]
  requestBody?: Described
  responses: Record<string, Described>
  /** A key with none of these scopes is answered these fields of the reply. */
  'x-receipt'?: { scopes: string[]; fields: string[] }
}

/** An OpenAPI 3.1 document, as far as it is worked on here. */
export interface Document {
  openapi: string
  info: { title: string; version: string; description: string }
  servers: { url: string }[]
  tags: { name: string }[]
  security: Json
  paths: Record<string, Record<string, Operation>>
  components: Components
}

export interface Components {
  schemas: Record<string, JsonObject>
  parameters: Record<string, Described>
  headers: Record<string, Described>
  responses: Record<string, Described>
  securitySchemes: Json
}

/** A JSON schema, as far as those of this API go. */
export interface Schema {
  $ref?: string
  type?: string | string[]
  format?: string
  const?: unknown
  enum?: unknown[]
  anyOf?: Schema[]
  oneOf?: Schema[]
  items?: Schema
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: Schema | boolean
  description?: string
  default?: unknown
}
