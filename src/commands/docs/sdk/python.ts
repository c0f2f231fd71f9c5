import { capitalized } from '../../../core/text.ts'
import type { Schema } from '../../../http/openapi/document.ts'
import { anyJson, type MethodAnswer, referred, type SdkMethod, type SdkTable, union } from './table.ts'

const notice = '# Printed by `npm run docs` from the declarations of the box. Not to be changed by hand.\n'

/** `types.py`: what is sent and answered, and events. */
export function pythonTypes({ methods, schemas, events }: SdkTable): string {
  const printed = new Types()
  for (const [name, schema] of schemas) if (name !== 'Event') printed.declare(name, schema)
  for (const method of methods) {
    if (hasOwnName(method)) printed.declare(inputType(method), method.input!.schema!)
  }
  const classes = [...events].map(([type, schema]) => {
    const name = `${type.split(/[._]/).map(capitalized).join('')}Event`
    const data = printed.typeOf(schema, `${name}Data`)
    printed.add(
      name,
      `class ${name}(TypedDict):
    id: str
    type: Literal[${literal(type)}]
    event: Literal[${literal(type)}]
    """The same as \`type\`."""
    identity_id: str | None
    created_at: str
    data: ${data}
    """Of a resource that was deleted since: \`{id, deleted}\`."""
`,
    )
    return name
  })
  return `${notice}
from __future__ import annotations

import sys
from typing import Any, Generic, Literal, TypeAlias, TypeVar, Union

if sys.version_info >= (3, 11):
    from typing import NotRequired, TypedDict
else:
    from typing_extensions import NotRequired, TypedDict

Row = TypeVar("Row")

${anyJson}: TypeAlias = Any
"""Any JSON."""


class Page(TypedDict, Generic[Row]):
    """The answer of every list."""

    data: list[Row]
    has_more: bool
    next_cursor: str | None


${printed.text()}

EventType: TypeAlias = Literal[
${[...events.keys()].map((type) => `    ${literal(type)},`).join('\n')}
]

Event: TypeAlias = Union[
${classes.map((name) => `    "${name}",`).join('\n')}
]
`
}

/** `methods.py`: the calls by group, once for programs that wait and once for those of asyncio. */
export function pythonMethods({ methods }: SdkTable): string {
  const groups = [...new Set(methods.map(({ group }) => group))]
  const printed = (asynchronous: boolean): string =>
    [
      ...groups.map((group) => groupClass(group, methods, asynchronous)),
      `class ${asynchronous ? 'Async' : ''}Methods:
    """The methods, by group."""

    def __init__(self, caller: ${asynchronous ? 'Async' : ''}Caller) -> None:
${groups.map((group) => `        self.${snake(group)} = ${asynchronous ? 'Async' : ''}${capitalized(group)}(caller)`).join('\n')}
`,
    ].join('\n\n')
  return `${notice}
from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, cast

from . import types as t
from .calls import AsyncCaller, Caller, Options, Unpack


${printed(false)}

${printed(true)}`
}

function groupClass(group: string, methods: readonly SdkMethod[], asynchronous: boolean): string {
  const own = methods.filter((method) => method.group === group)
  const prefix = asynchronous ? 'Async' : ''
  return `class ${prefix}${capitalized(group)}:
    def __init__(self, caller: ${prefix}Caller) -> None:
        self._caller = caller

${own.map((method) => methodOf(method, asynchronous)).join('\n')}`
}

function methodOf(method: SdkMethod, asynchronous: boolean): string {
  const { name, params, input, answer, summary, httpMethod } = method
  const given = input ? [`${input.kind}: ${sentType(method)}${input.required ? '' : ' | None = None'}`] : []
  const ids = params.map((param) => `${param}: ${param === 'index' ? 'int' : 'str'}`)
  const signature = ['self', ...ids, ...given, '**options: Unpack[Options]'].join(', ')
  const call = [
    literal(httpMethod),
    literal(method.path),
    `{${params.map((param) => `${literal(param)}: ${param}`).join(', ')}}`,
    literal(input?.kind ?? ''),
    input ? input.kind : 'None',
    literal(answer.kind),
  ].join(', ')
  const type = answerType(method)
  const [define, wait] = asynchronous ? ['async def', 'await '] : ['def', '']
  const lines = [
    `    ${define} ${pythonName(name)}(${signature}) -> ${type}:
        """${summary}."""
        return cast(${literal(type)}, ${wait}self._caller.call(${call}, options))
`,
  ]
  if (answer.kind === 'page') {
    const row = rowType(answer)
    lines.push(`    def ${name === 'list' ? 'iterate' : `iterate_${snake(name)}`}(${signature}) -> ${asynchronous ? 'AsyncIterator' : 'Iterator'}[${row}]:
        """${summary}: the rows of all pages."""
        return self._caller.rows(${call}, options)
`)
  }
  return lines.join('\n')
}

function sentType(method: SdkMethod): string {
  if (method.input!.kind === 'octets') return 'bytes'
  const type = hasOwnName(method) ? `t.${inputType(method)}` : `t.${referred(method.input!.schema!)!}`
  // a card with its number is encrypted on its way
  return type === 't.NewCard' ? `${type} | dict[str, Any]` : type
}

function answerType(method: SdkMethod): string {
  const { answer } = method
  if (answer.kind === 'text') return 'str'
  if (answer.kind === 'octets') return 'bytes'
  return answer.kind === 'page' ? `t.Page[${rowType(answer)}]` : rowType(answer)
}

function rowType({ schema }: MethodAnswer): string {
  const name = referred(schema!)
  return name === undefined ? 'dict[str, Any]' : `t.${name}`
}

function inputType({ group, name, input }: SdkMethod): string {
  return `${capitalized(group)}${capitalized(name)}${capitalized(input!.kind)}`
}

/** True if the input has no name in the API. */
function hasOwnName({ input }: SdkMethod): boolean {
  return input?.schema !== undefined && input.schema.$ref === undefined
}

/** Declarations by name. An object within another gets a name of its own, as a TypedDict must. */
class Types {
  readonly #texts = new Map<string, string>()

  add(name: string, text: string): void {
    if (this.#texts.has(name)) throw new Error(`${name} is declared twice`)
    this.#texts.set(name, text)
  }

  text(): string {
    return [...this.#texts.values()].join('\n\n').trimEnd()
  }

  declare(name: string, schema: Schema): void {
    if (!schema.properties) {
      this.add(name, `${name}: TypeAlias = ${literal(this.typeOf(schema, `${name}Choice`))}\n`)
      return
    }
    const { properties, required = [], description } = schema
    const fields = Object.entries(properties).map(([field, one]) => {
      const type = this.typeOf(one, `${name}${field.split(/\W|_/).map(capitalized).join('')}`)
      return { field, type: required.includes(field) ? type : `NotRequired[${type}]`, words: one.description }
    })
    // a class cannot have a field that is called `from`
    if (fields.some(({ field }) => !isName(field))) {
      const lines = fields.map(({ field, type }) => `    ${literal(field)}: ${literal(type)},`)
      this.add(name, `${name} = TypedDict(${literal(name)}, {\n${lines.join('\n')}\n})\n`)
      return
    }
    const words = description === undefined ? [] : [`    ${docstring(description)}\n`]
    const lines = fields.flatMap(({ field, type, words: about }) => [
      `    ${field}: ${type}`,
      ...(about === undefined ? [] : [`    ${docstring(about)}`]),
    ])
    this.add(name, `class ${name}(TypedDict):\n${[...words, ...(lines.length === 0 ? ['    pass'] : lines)].join('\n')}\n`)
  }

  /** `own` is the name that an object gets. */
  typeOf(schema: Schema, own: string): string {
    const name = referred(schema)
    if (name !== undefined) return name
    if (schema.const !== undefined) return `Literal[${literal(schema.const)}]`
    if (schema.enum) return `Literal[${schema.enum.map(literal).join(', ')}]`
    const choices = schema.anyOf ?? schema.oneOf
    if (choices) return union(choices.map((choice, index) => this.typeOf(choice, index === 0 ? own : `${own}${index + 1}`)))
    return union([schema.type ?? 'unknown'].flat().map((type) => this.#basic(type, schema, own)))
  }

  #basic(type: string, schema: Schema, own: string): string {
    if (type === 'array') return `list[${this.typeOf(schema.items ?? {}, own)}]`
    if (type !== 'object') return basic[type] ?? 'Any'
    if (schema.properties && Object.keys(schema.properties).length > 0) {
      this.declare(own, schema)
      return own
    }
    const { additionalProperties: rest } = schema
    return `dict[str, ${typeof rest === 'object' ? this.typeOf(rest, own) : 'Any'}]`
  }
}

const basic: Record<string, string> = { string: 'str', number: 'float', integer: 'int', boolean: 'bool', null: 'None' }

const keywords = new Set(
  'False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield'.split(
    ' ',
  ),
)

function isName(text: string): boolean {
  return /^[A-Za-z_]\w*$/.test(text) && !keywords.has(text)
}

/** `setPhone` → `set_phone`, and `import` → `import_` */
function pythonName(name: string): string {
  const text = snake(name)
  return isName(text) ? text : `${text}_`
}

function docstring(text: string): string {
  return `"""${text.replaceAll('\\', '\\\\').replaceAll('"""', "'''").replace(/"$/, '" ')}"""`
}

function literal(value: unknown): string {
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  return value === null ? 'None' : JSON.stringify(value)
}

function snake(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}
