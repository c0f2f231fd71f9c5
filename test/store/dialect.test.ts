import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseSync, Visitor } from 'vite'
import { expect, test } from 'vitest'

const src = fileURLToPath(new URL('../../src/', import.meta.url))

/** A feature that YugabyteDB or CockroachDB lacks, or has in another way: the statements must do without it. */
interface Limit {
  feature: string
  /** What it is told by. */
  sign: RegExp
  /** A statement that it refuses. */
  example: string
  /** Where it is used nevertheless, and what a box on such a server needs in its place. */
  exceptions?: { file: string; instead: string }[]
}

const baseline = 'store/postgres/baseline.sql'

const limits: Limit[] = [
  {
    feature: 'advisory locks',
    sign: /\bpg_(?:try_)?advisory_/i,
    example: 'SELECT pg_try_advisory_xact_lock(1)',
    exceptions: [
      {
        file: 'store/postgres/box-lock.ts',
        instead:
          'a row of the table leases, which a box renews with its heartbeat and a migration waits for; CockroachDB accepts the functions and locks nothing',
      },
    ],
  },
  {
    feature: 'LISTEN and NOTIFY',
    sign: /^\s*(?:(?:un)?listen|notify)\s+(?:\w+|\*|\S+,\s*'[^']*')\s*;?\s*$|\bpg_notify\b/im,
    example: "SELECT pg_notify('mail', '')",
  },
  {
    feature: 'triggers',
    sign: /\bcreate\s+(?:or\s+replace\s+)?(?:constraint\s+)?trigger\b|\breturns\s+trigger\b/i,
    example: 'CREATE TRIGGER kept BEFORE DELETE ON audit FOR EACH ROW EXECUTE FUNCTION refused()',
    exceptions: [
      {
        file: baseline,
        instead:
          'checks of the chain of the audit log, which triggers keep from being changed: the code that writes it, and `audit verify`',
      },
    ],
  },
  {
    feature: 'blocks and functions in plpgsql',
    sign: /\blanguage\s+plpgsql\b|^\s*do\s+(?:language\b|\$)/im,
    example: 'DO $$ BEGIN NULL; END $$',
    exceptions: [{ file: baseline, instead: 'json_valid and the triggers; CockroachDB has such functions since 23.2' }],
  },
  {
    feature: 'transaction ids and snapshots',
    sign: /\bxid8?\b|\btxid_|\bpg_current_(?:xact|snapshot)|\bpg_snapshot|\bage\(/i,
    example: 'SELECT pg_current_xact_id()',
  },
  {
    feature: 'system columns',
    sign: /\b(?:xmin|xmax|cmin|cmax|ctid|tableoid)\b/i,
    example: 'DELETE FROM events WHERE ctid = $1',
  },
  { feature: 'extensions', sign: /\bcreate\s+extension\b/i, example: 'CREATE EXTENSION pgcrypto' },
  {
    feature: 'locks of tables',
    sign: /\block\s+(?:table\b|\w+\s+in\b)/i,
    example: 'LOCK TABLE events IN EXCLUSIVE MODE',
    exceptions: [
      {
        file: 'store/postgres/writer.ts',
        instead:
          'nothing where the server queues transactions that conflict, as CockroachDB and YugabyteDB do; else a row that is locked in a transaction before',
      },
    ],
  },
  {
    feature: 'exclusion constraints',
    sign: /\bexclude\s+using\b/i,
    example: 'CREATE TABLE a (b int4range, EXCLUDE USING gist (b WITH &&))',
  },
  {
    feature: 'deferrable constraints',
    sign: /\bdeferrable\b|\binitially\s+deferred\b|\bset\s+constraints\b/i,
    example: 'ALTER TABLE a ADD UNIQUE (b) DEFERRABLE',
  },
  { feature: 'inheritance of tables', sign: /\binherits?\s*\(|\binherit\s+\w/i, example: 'CREATE TABLE a () INHERITS (b)' },
  {
    feature: 'temporary and unlogged tables',
    sign: /\bcreate\s+(?:(?:global|local)\s+)?(?:temp|temporary|unlogged)\b/i,
    example: 'CREATE TEMP TABLE a (b text)',
  },
  {
    feature: 'two-phase commit',
    sign: /\bprepare\s+transaction\b|\b(?:commit|rollback)\s+prepared\b/i,
    example: "PREPARE TRANSACTION 'a'",
  },
  {
    feature: 'large objects',
    sign: /\blo_(?:creat|open|import|export|get|put|unlink|from_bytea)\w*\b|\bpg_largeobject/i,
    example: 'SELECT lo_create(0)',
  },
  {
    feature: 'GiST, SP-GiST and BRIN indexes',
    sign: /\busing\s+(?:gist|spgist|brin)\b/i,
    example: 'CREATE INDEX a ON b USING brin (c)',
  },
  {
    feature: 'GIN indexes, which are of one column there',
    sign: /\busing\s+gin\s*\([^(),]*,/i,
    example: 'CREATE INDEX a ON b USING gin (c, d)',
  },
  {
    feature: 'generated columns',
    sign: /\bgenerated\s+always\s+as\s*\(/i,
    example: 'CREATE TABLE a (b int, c int GENERATED ALWAYS AS (b + 1) STORED)',
  },
  { feature: 'XML', sign: /\bxml(?:parse|element|forest|agg|table|query)\b|\bxpath\(/i, example: 'SELECT xmlelement(name a)' },
  {
    feature: 'rules and event triggers',
    sign: /\bcreate\s+(?:or\s+replace\s+)?(?:rule|event\s+trigger)\b/i,
    example: 'CREATE RULE a AS ON DELETE TO b DO INSTEAD NOTHING',
  },
  {
    feature: 'cursors that move back or outlive their transaction',
    sign: /(?<!\bno\s)\bscroll\s+cursor\b|\bcursor\s+with\s+hold\b/i,
    example: 'DECLARE a SCROLL CURSOR WITH HOLD FOR SELECT 1',
  },
  {
    feature: 'storage of columns',
    sign: /\bset\s+storage\b/i,
    example: 'ALTER TABLE blobs ALTER COLUMN bytes SET STORAGE EXTERNAL',
    exceptions: [
      {
        file: baseline,
        instead: 'nothing: it only spares a compression that does not help, and is left out of a schema for such servers',
      },
    ],
  },
  { feature: 'WHERE CURRENT OF', sign: /\bwhere\s+current\s+of\b/i, example: 'UPDATE a SET b = 1 WHERE CURRENT OF c' },
  {
    feature: 'foreign data',
    sign: /\bcreate\s+(?:foreign\s+(?:table|data)|server)\b/i,
    example: 'CREATE FOREIGN TABLE a (b text) SERVER c',
  },
]

interface Text {
  file: string
  text: string
}

/** What begins like a statement, or calls a function of the server. */
const statement =
  /^\s*(?:select|insert|update|delete|with|create|alter|drop|begin|commit|rollback|set|lock|listen|unlisten|notify|do|declare|copy|truncate|vacuum|analyze|prepare|explain)\b|\bpg_\w+/i

/** The SQL of the box for a server: what is tagged so in the source, texts that are statements, and the files of the schema. */
function statements(): Text[] {
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).toSorted()
  const elsewhere = /^(?:store\/(?:sqlite|migrations)\/|web\/browser\/)/
  return files
    .filter((file) => !elsewhere.test(file))
    .flatMap((file) => {
      if (file.endsWith('.sql')) return [{ file, text: withoutComments(readFileSync(src + file, 'utf8')) }]
      return file.endsWith('.ts') ? textsIn(file, readFileSync(src + file, 'utf8')) : []
    })
}

function textsIn(file: string, source: string): Text[] {
  const found: Text[] = []
  const add = (text: string, tagged = false): void => {
    if (tagged || statement.test(text)) found.push({ file, text: withoutComments(text) })
  }
  const { program } = parseSync(file, source)
  new Visitor({
    TaggedTemplateExpression({ tag, quasi }) {
      if (tag.type === 'Identifier' && tag.name === 'sql')
        add(quasi.quasis.map(({ value }) => value.cooked ?? '').join(' '), true)
    },
    TemplateLiteral({ quasis }) {
      add(quasis.map(({ value }) => value.cooked ?? '').join(' '))
    },
    Literal({ value }) {
      if (typeof value === 'string') add(value)
    },
  }).visit(program)
  return found
}

function withoutComments(text: string): string {
  return text.replaceAll(/--[^\n]*/g, '')
}

test.each(limits)('$feature are found where a statement has them', ({ feature, example }) => {
  expect(limits.filter(({ sign }) => sign.test(example)).map((limit) => limit.feature)).toContain(feature)
})

test('the SQL for a server has nothing that YugabyteDB or CockroachDB lacks, but what is listed with what it would take', () => {
  const all = statements()
  expect(all.length).toBeGreaterThan(1000)
  const used = limits.flatMap(({ feature, sign, exceptions = [] }) => {
    const files = new Set(all.filter(({ text }) => sign.test(text)).map(({ file }) => file))
    return [...files]
      .filter((file) => !exceptions.some((exception) => exception.file === file))
      .map((file) => `${file}: ${feature}`)
  })
  expect(used).toEqual([])
  const unused = limits.flatMap(({ feature, sign, exceptions = [] }) =>
    exceptions
      .filter(({ file }) => !all.some((one) => one.file === file && sign.test(one.text)))
      .map(({ file }) => `${file}: ${feature}`),
  )
  expect(unused).toEqual([])
})
