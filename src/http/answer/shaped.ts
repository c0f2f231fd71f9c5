import type * as z from 'zod'

/** Returned where only the schema can tell what it makes of a value. */
export const unsure = Symbol('unsure')

/** What a schema makes of a value, or `unsure`. */
type Shape = (value: unknown) => unknown

const shapes = new WeakMap<z.core.$ZodType, Shape>()

/**
 * What the schema makes of a value that needs no change but the order and number of its fields: the value itself, or a copy with the fields that the
 * schema names. For any other value, valid or not, it is `unsure`. The schema makes copies of all that is in the value, which takes ten times as long.
 */
export function shaped(schema: z.core.$ZodType, value: unknown): unknown {
  return shapeOf(schema)(value)
}

function shapeOf(schema: z.core.$ZodType): Shape {
  const known = shapes.get(schema)
  if (known) return known
  // for a schema that contains itself
  shapes.set(schema, () => unsure)
  const shape = compile(schema)
  shapes.set(schema, shape)
  return shape
}

function compile(schema: z.core.$ZodType): Shape {
  const { _zod: internals } = schema as z.core.$ZodTypes
  const { def } = internals
  if (def.type === 'string') return textShape(def)
  if (def.checks && def.checks.length > 0) return () => unsure
  switch (def.type) {
    case 'number':
      return numberShape(def)
    case 'boolean':
      return having((value) => typeof value === 'boolean')
    case 'null':
      return having((value) => value === null)
    case 'literal':
      return oneOf(def.values)
    case 'enum':
      return oneOf(Object.values(def.entries))
    case 'nullable':
      return or(null, def.innerType)
    case 'optional':
      return or(undefined, def.innerType)
    case 'default':
      return given(def.innerType)
    case 'array':
      return listShape(def.element)
    case 'object':
      return def.catchall ? () => unsure : objectShape(def.shape)
    case 'record':
      return recordShape(def)
    case 'union':
      return unionShape(def)
    case 'lazy':
      return lazyShape(schema as z.core.$ZodLazy)
    default:
      return () => unsure
  }
}

/** Of a schema that contains itself. */
function lazyShape({ _zod: internals }: z.core.$ZodLazy): Shape {
  let shape: Shape | undefined
  // not by the getter, which makes another schema at each call
  return (value) => (shape ??= shapeOf(internals.innerType))(value)
}

function having(condition: (value: unknown) => boolean): Shape {
  return (value) => (condition(value) ? value : unsure)
}

/** Of texts with bounds or formats other than that of times the schema decides. */
function textShape(def: z.core.$ZodStringDef): Shape {
  const { format, pattern }: Partial<z.core.$ZodStringFormatDef> = def
  const [refinement, ...others] = (def.checks ?? []).map(({ _zod: check }) => check.def as Partial<z.core.$ZodCustomDef>)
  if (format === 'datetime' && pattern && !refinement) {
    return (value) => (typeof value === 'string' && pattern.test(value) ? value : unsure)
  }
  if (format !== undefined || others.length > 0) return () => unsure
  if (!refinement) return (value) => (typeof value === 'string' ? value : unsure)
  const { check, fn } = refinement
  if (check !== 'custom' || !fn) return () => unsure
  return (value) => (typeof value === 'string' && fn(value) === true ? value : unsure)
}

function numberShape(def: z.core.$ZodNumberDef): Shape {
  const { format }: Partial<z.core.$ZodNumberFormatDef> = def
  if (format === undefined) return having(Number.isFinite)
  return format === 'safeint' ? having(Number.isSafeInteger) : () => unsure
}

function oneOf(values: readonly unknown[]): Shape {
  const set = new Set(values)
  return having((value) => set.has(value))
}

function or(other: null | undefined, schema: z.core.$ZodType): Shape {
  const shape = shapeOf(schema)
  return (value) => (value === other ? value : shape(value))
}

/** Of a field that is missing the schema has a default. */
function given(schema: z.core.$ZodType): Shape {
  const shape = shapeOf(schema)
  return (value) => (value === undefined ? unsure : shape(value))
}

function listShape(element: z.core.$ZodType): Shape {
  const shape = shapeOf(element)
  return (value) => {
    if (!Array.isArray(value)) return unsure
    let list: unknown[] = value
    for (let at = 0; at < value.length; at += 1) {
      const item = shape(value[at])
      if (item === unsure) return unsure
      if (item !== list[at]) {
        if (list === value) list = [...value]
        list[at] = item
      }
    }
    return list
  }
}

interface Field {
  name: string
  shape: Shape
  /** It may be missing. */
  isOptional: boolean
}

function objectShape(shape: z.core.$ZodShape): Shape {
  const fields = Object.entries(shape).map(([name, schema]): Field => {
    const field = shapeOf(schema)
    return { name, shape: field, isOptional: field(undefined) === undefined }
  })
  return (value) => (!isPlain(value) ? unsure : hasFields(value, fields) ? value : picked(value, fields))
}

/** True for an object that has these fields in this order, and no others, none of which needs a change. */
function hasFields(value: Record<string, unknown>, fields: readonly Field[]): boolean {
  let at = 0
  for (const name in value) {
    while (at < fields.length && fields[at]!.name !== name && fields[at]!.isOptional) at += 1
    const field = fields[at]
    if (field?.name !== name || field.shape(value[name]) !== value[name]) return false
    at += 1
  }
  while (at < fields.length && fields[at]!.isOptional) at += 1
  return at === fields.length
}

function picked(value: Record<string, unknown>, fields: readonly Field[]): unknown {
  const copy: Record<string, unknown> = {}
  for (const { name, shape, isOptional } of fields) {
    if (name in value) {
      const found = shape(value[name])
      if (found === unsure) return unsure
      copy[name] = found
    } else if (!isOptional) return unsure
  }
  return copy
}

function recordShape({ keyType, valueType }: z.core.$ZodRecordDef): Shape {
  const { _zod: internals } = keyType
  // of other keys it may demand all
  if (internals.def.type !== 'string') return () => unsure
  const key = shapeOf(keyType)
  const shape = shapeOf(valueType)
  return (value) => {
    if (!isPlain(value)) return unsure
    for (const name in value) {
      if (name === '__proto__' || key(name) === unsure || shape(value[name]) !== value[name]) return unsure
    }
    return value
  }
}

/** Kinds of which a value has one at most. */
const kinds = new Set(['string', 'number', 'boolean', 'null', 'array', 'record'])

/** Of schemas that may take the same value the union decides. */
function unionShape({ options, discriminator }: z.core.$ZodUnionDef & { discriminator?: string }): Shape {
  const types = new Set(options.map(({ _zod: internals }) => internals.def.type))
  const areApart = types.size === options.length && [...types].every((type) => kinds.has(type))
  if (discriminator === undefined && !areApart) return () => unsure
  const branches = options.map(shapeOf)
  return (value) => {
    for (const shape of branches) {
      const found = shape(value)
      if (found !== unsure) return found
    }
    return unsure
  }
}

/** False for objects of classes, which JSON may show in another way. */
function isPlain(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}
