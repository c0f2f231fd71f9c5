import * as z from 'zod'

/** One setting, as its schema declares it. */
export interface Setting {
  path: string[]
  /** `http.listen` */
  name: string
  /** `PILLARBOX_HTTP__LISTEN` */
  variable: string
  kind: 'text' | 'number' | 'switch' | 'list'
  /** The accepted values, in a few words. */
  type: string
  /** The default as one would write it; undefined when there is none. */
  fallback: unknown
  /** The behaviour without a default, in words. */
  otherwise: string | undefined
  /** Must be written whenever its section is. */
  required: boolean
  /** Bytes, time, connections, …: what a bare number counts. */
  unit: string | undefined
  description: string
  example: unknown
  /** Never shown; may come from a file named by `<name>_file`, or from a systemd credential. */
  secret: boolean
  /** A change only takes effect after a restart. */
  restart: boolean
  /** Names a file that must be there, or a directory that need not. */
  names: 'file' | 'directory' | undefined
}

/** A group of settings and what it holds, in the order of the schema. */
export interface Section {
  path: string[]
  description: string
  /** An optional section has required settings, and is absent when it is not written. */
  optional: boolean
  /** The members are all of one sort: an unknown name is refused with all that there are. */
  enumerated: boolean
  members: (Setting | Section)[]
}

/** The tree of settings a schema declares. */
export function sections(schema: z.ZodType, path: string[] = []): Section {
  const { core, meta, optional } = unwrap(schema)
  if (!(core instanceof z.ZodObject)) throw new TypeError(`${path.join('.')} is not a group of settings`)
  const members = Object.entries<z.ZodType>(core.shape).map(([name, member]) => {
    const inner = unwrap(member)
    return inner.core instanceof z.ZodObject ? sections(member, [...path, name]) : describe([...path, name], inner)
  })
  return { path, description: text(meta.description) ?? '', optional, enumerated: meta.enumerated === true, members }
}

/** Every setting below a section. */
export function settingsOf(section: Section): Setting[] {
  return section.members.flatMap((member) => ('members' in member ? settingsOf(member) : [member]))
}

/** The name of the environment variable that sets a path. */
export function variable(path: readonly string[]): string {
  return `PILLARBOX_${path.join('__').toUpperCase()}`
}

/** The path of the setting that names the file of a secret: `metrics.token_file`. */
export function besidePath(setting: Setting): string[] {
  return [...setting.path.slice(0, -1), `${setting.path.at(-1)}_file`]
}

/** The value at a path of a tree; undefined if there is none. */
export function read(tree: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (node, step) =>
      typeof node === 'object' && node !== null && Object.hasOwn(node, step) ? Reflect.get(node, step) : undefined,
    tree,
  )
}

interface Unwrapped {
  core: z.ZodType
  meta: Record<string, unknown>
  fallback: unknown
  optional: boolean
}

function unwrap(schema: unknown): Unwrapped {
  if (!(schema instanceof z.ZodType)) throw new TypeError('not a schema')
  const own = schema.meta() ?? {}
  if (schema instanceof z.ZodOptional) {
    const inner = unwrap(schema.unwrap())
    return { ...inner, meta: { ...inner.meta, ...own }, optional: true }
  }
  if (schema instanceof z.ZodPrefault) {
    const inner = unwrap(schema.unwrap())
    return { ...inner, meta: { ...inner.meta, ...own }, fallback: schema.def.defaultValue }
  }
  if (schema instanceof z.ZodPipe) {
    const inner = unwrap(schema.in)
    return { ...inner, meta: { ...inner.meta, ...own } }
  }
  return { core: schema, meta: own, fallback: undefined, optional: false }
}

function describe(path: string[], { core, meta, fallback, optional }: Unwrapped): Setting {
  return {
    path,
    name: path.join('.'),
    variable: variable(path),
    kind: kindOf(core),
    type: typeOf(core, meta),
    fallback,
    otherwise: text(meta.otherwise),
    required: fallback === undefined && !optional,
    unit: text(meta.unit),
    description: text(meta.description) ?? '',
    example: meta.example,
    secret: meta.secret === true,
    restart: meta.restart === true,
    names: meta.file === true ? 'file' : meta.directory === true ? 'directory' : undefined,
  }
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

function kindOf(core: z.ZodType): Setting['kind'] {
  if (core instanceof z.ZodNumber) return 'number'
  if (core instanceof z.ZodBoolean) return 'switch'
  const lists =
    core instanceof z.ZodArray || (core instanceof z.ZodUnion && core.options.some((option) => option instanceof z.ZodArray))
  return lists ? 'list' : 'text'
}

function typeOf(core: z.ZodType, meta: Record<string, unknown>): string {
  if (core instanceof z.ZodEnum) return `one of ${core.options.join(', ')}`
  if (core instanceof z.ZodNumber) return `whole number, ${core.minValue} to ${core.maxValue}`
  if (kindOf(core) === 'switch') return 'true or false'
  if (kindOf(core) === 'list') return 'list'
  // a quantity: a number, or a text with its unit
  if (core instanceof z.ZodUnion) return text(meta.unit)?.startsWith('bytes') ? 'size' : 'time'
  return meta.file === true ? 'path of a file' : meta.directory === true ? 'path of a directory' : 'text'
}
