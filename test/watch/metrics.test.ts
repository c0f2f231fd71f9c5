import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { type Appliance, deliver, message, openAppliance } from '../support/appliance.ts'
import { peer } from '../support/peer.ts'
import { Dialogue } from '../support/smtp.ts'
import { WebhookSink } from '../support/webhook-sink.ts'
import { readingsOf, strangersIn } from './promql.ts'
import { familiesIn, sampleOf } from './scrape.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const token = 'a-token-that-opens-the-metrics'

let box: Appliance
let close: () => Promise<void>

beforeAll(async () => {
  ;({ box, close } = await openAppliance({
    PILLARBOX_METRICS__TOKEN: token,
    PILLARBOX_SUBMISSION__LISTEN: '127.0.0.1:0',
    PILLARBOX_HTTP__PUBLIC_RATE_LIMIT: '3',
    PILLARBOX_WEBHOOKS__ALLOW_NETWORKS: '127.0.0.0/8',
  }))
})
afterAll(() => close())

function byName(one: { name?: string | undefined }, other: { name?: string | undefined }): number {
  return one.name! < other.name! ? -1 : 1
}

async function scrape(): Promise<string> {
  const { status, body } = await box.call<string>('GET', '/metrics', undefined, { key: token })
  expect(status).toBe(200)
  return body
}

test('what happens to mail, calls and webhooks is counted', async () => {
  const sink = await WebhookSink.start()
  await box.call('POST', '/v1/webhooks', { url: `${sink.url}/`, events: ['email.received'] })
  const { body: ada } = await box.call('POST', '/v1/identities', { name: 'Ada' })
  await deliver(box.smtp, { to: ada.email, raw: message({ Subject: 'One' }, 'hello') })
  await deliver(box.smtp, { to: 'nobody@pillarbox.test', raw: message({ Subject: 'Two' }, 'hello') })
  await deliver(box.smtp, { to: ada.email, raw: 'a bare\nline' })
  for (let call = 0; call < 5; call++) await box.call('GET', '/v1/identities', undefined, { key: 'wrong' })
  const rude = await Dialogue.hello(box.smtp.port)
  await rude.say('STARTTLS')
  rude.send('this is no handshake\r\n')
  await expect.poll(async () => sampleOf(await scrape(), 'pillarbox_delivery_age_seconds_count', { kind: 'webhook' })).toBe(1)
  await expect.poll(async () => sampleOf(await scrape(), 'pillarbox_smtp_tls_failures_total', { door: 'smtp' })).toBe(1)
  await expect.poll(async () => sampleOf(await scrape(), 'pillarbox_follower_behind_events', { follower: 'webhooks' })).toBe(0)

  const text = await scrape()
  const all: [string, Record<string, string>, number][] = [
    ['pillarbox_smtp_messages_total', { door: 'smtp', result: 'taken' }, 1],
    ['pillarbox_smtp_messages_total', { door: 'smtp', result: 'refused' }, 1],
    ['pillarbox_smtp_refusals_total', { stage: 'recipient', reply: '550', code: '5.1.1' }, 1],
    ['pillarbox_smtp_refusals_total', { stage: 'message', reply: '550', code: '5.6.0' }, 1],
    ['pillarbox_smtp_answer_seconds_count', { door: 'smtp' }, 2],
    ['pillarbox_mail_checks_total', { check: 'spf', result: 'none' }, 1],
    ['pillarbox_examiner_messages_total', { result: 'examined' }, 1],
    ['pillarbox_events_total', { type: 'email.received' }, 1],
    ['pillarbox_webhook_answers_total', { answer: '2xx' }, 1],
    ['pillarbox_webhooks', { state: 'well' }, 1],
    ['pillarbox_delivery_attempt_seconds_count', { kind: 'webhook' }, 1],
    ['pillarbox_deliveries_oldest_seconds', { kind: 'webhook' }, 0],
    ['http_errors_total', { code: 'invalid_key' }, 3],
    ['http_errors_total', { code: 'rate_limited' }, 2],
    ['http_rate_limited_total', { policy: 'address' }, 2],
    ['pillarbox_failing', { what: 'store' }, 0],
    ['pillarbox_disk_reserve_bytes', {}, 0],
  ]
  expect(all.map(([name, labels]) => [name, labels, sampleOf(text, name, labels)])).toEqual(all)
  const more = [
    sampleOf(text, 'pillarbox_dns_queries_total', { use: 'checks', result: 'absent' }),
    sampleOf(text, 'pillarbox_store_commit_seconds_count'),
    sampleOf(text, 'pillarbox_store_flush_seconds_sum'),
    sampleOf(text, 'pillarbox_store_database_bytes'),
    sampleOf(text, 'pillarbox_disk_free_bytes'),
    sampleOf(text, 'http_connections'),
  ]
  for (const figure of more) expect(figure).toBeGreaterThan(0)
})

test('a figure that cannot be read is left out, and keeps nobody from the others', async () => {
  const { metrics } = box.app
  metrics.gauge('zz_broken', 'Throws', () => Promise.reject(new Error('not now')))
  expect(sampleOf(await metrics.text(), 'zz_broken')).toBeUndefined()
  const text = await metrics.text()
  expect(sampleOf(text, 'pillarbox_figures_unread_total', { name: 'zz_broken' })).toBeGreaterThan(0)
  expect(sampleOf(text, 'pillarbox_figures_unread_total', { name: 'pillarbox_deliveries' })).toBe(0)
  expect(sampleOf(text, 'pillarbox_webhooks', { state: 'off' })).toBe(0)
})

test('docs/observe.md has every metric with its type, its labels and what it tells, and no other', async () => {
  const declared = new Map(box.app.metrics.declared.map(({ name, labels }) => [name, labels]))
  const told = [...familiesIn(await scrape()).values()].filter(({ name }) => !name.startsWith('zz_'))
  const page = readFileSync(join(root, 'docs/observe.md'), 'utf8')
  const written = [...page.matchAll(/^\| `(\w+)` \| (\w+) \| (.*?) \| (.*) \|$/gm)].map(([, name, type, labels, help]) => {
    return { name, type, help, labels: [...labels!.matchAll(/`(\w+)`/g)].map(([, label]) => label) }
  })
  const expected = told.map(({ name, type, help }) => ({ name, type, help, labels: declared.get(name) }))
  expect(written.toSorted(byName)).toEqual(expected.toSorted(byName))
  for (const { name, labels } of told)
    expect([name, labels.filter((label) => !declared.get(name)!.includes(label))]).toEqual([name, []])
  // Prometheus names these itself
  for (const labels of declared.values())
    expect(labels).not.toEqual(expect.arrayContaining([expect.stringMatching(/^(?:job|instance)$/)]))
})

test('promtool has nothing to say against what the box tells', async () => {
  const promtool = peer('promtool', 'apt-get install prometheus')
  if (promtool === undefined) return
  const { status, stdout, stderr } = spawnSync(promtool, ['check', 'metrics'], { input: await scrape(), encoding: 'utf8' })
  expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: '', stderr: '' })
})

interface Panel {
  id: number
  type: string
  title: string
  datasource?: { type: string; uid: string }
  gridPos: { h: number; w: number; x: number; y: number }
  targets?: { refId: string; expr: string; legendFormat: string }[]
}

interface Dashboard {
  title: string
  uid: string
  schemaVersion: number
  panels: Panel[]
  templating: { list: { name: string; type: string; query: unknown }[] }
}

const dashboard = JSON.parse(readFileSync(join(root, 'docs/grafana.json'), 'utf8')) as Dashboard
/** What Grafana puts in the place of its variables. */
const filled = (expression: string): string =>
  expression.replaceAll('$__rate_interval', '5m').replaceAll('$instance', '127.0.0.1:9464')

test('every panel of the dashboard reads metrics and labels that there are', async () => {
  const families = familiesIn(await scrape())
  const declared = new Map(box.app.metrics.declared.map(({ name, labels }) => [name, labels]))
  const asked = dashboard.panels.flatMap(({ title, targets = [] }) => targets.map((target) => ({ title, ...target })))
  expect(asked.length).toBeGreaterThan(60)
  for (const { title, expr, legendFormat } of asked) {
    expect([title, strangersIn(filled(expr), families, declared)]).toEqual([title, []])
    const { metrics, grouping } = readingsOf(filled(expr))
    // what was summed away cannot be in the legend
    const left = /\b(?:sum|histogram_quantile|min|max)\b/.test(expr) ? grouping : declared.get(metrics[0]!.name)
    const legend = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label!)
    expect([title, legend.filter((label) => !left?.includes(label))]).toEqual([title, []])
  }
  const all = new Set(
    asked.flatMap(({ expr }) => readingsOf(filled(expr)).metrics.map(({ name }) => name.replace(/_(?:bucket|sum|count)$/, ''))),
  )
  const ours = [...families.keys()].filter((name) => /^(?:pillarbox|http)_/.test(name))
  expect(ours.filter((name) => !all.has(name))).toEqual([])
})

test('the dashboard stands by itself: its places, its numbers, and a data source that is asked for', () => {
  const { panels, templating, schemaVersion, title, uid } = dashboard
  expect({ title, uid, current: schemaVersion >= 36 }).toEqual({ title: 'Pillarbox', uid: 'pillarbox', current: true })
  expect(templating.list.map(({ name, type }) => `${name} ${type}`)).toEqual(['datasource datasource', 'instance query'])
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
  const taken = new Set<string>()
  for (const { type, datasource, targets, gridPos, title: name } of panels) {
    if (type !== 'row') expect([name, datasource?.uid, targets?.length]).toEqual([name, '${datasource}', expect.any(Number)])
    expect([name, gridPos.x + gridPos.w <= 24]).toEqual([name, true])
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        expect([name, taken.has(`${x} ${y}`)]).toEqual([name, false])
        taken.add(`${x} ${y}`)
      }
    }
  }
})

test('Prometheus can read every expression of the dashboard', () => {
  const promtool = peer('promtool', 'apt-get install prometheus')
  if (promtool === undefined) return
  const directory = mkdtempSync(join(tmpdir(), 'pillarbox-rules-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const expressions = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => filled(expr)))
  const rules = expressions.map((expr, index) => ({ record: `panel:${index}`, expr }))
  const file = join(directory, 'rules.yaml')
  writeFileSync(file, JSON.stringify({ groups: [{ name: 'panels', rules }] }))
  const { status, stdout, stderr } = spawnSync(promtool, ['check', 'rules', file], { encoding: 'utf8' })
  expect({ status, stderr, found: stdout.includes(`${rules.length} rules found`) }).toEqual({
    status: 0,
    stderr: '',
    found: true,
  })
})

interface Rule {
  alert: string
  expr: string
  labels: { severity: string }
  annotations: { summary: string; description: string }
}

const { groups } = parse(readFileSync(join(root, 'docs/alerts.yaml'), 'utf8')) as { groups: { rules: Rule[] }[] }
const rules = groups.flatMap((group) => group.rules)

test('every alert reads metrics and labels that there are, and says what to do', async () => {
  const families = familiesIn(await scrape())
  const declared = new Map(box.app.metrics.declared.map(({ name, labels }) => [name, labels]))
  for (const { alert, expr, labels, annotations } of rules) {
    expect([alert, strangersIn(expr, families, declared)]).toEqual([alert, []])
    expect(['critical', 'warning', 'info']).toContain(labels.severity)
    expect(annotations.description.length).toBeGreaterThan(40)
  }
  expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length)
})

test('every alert fires when it should, alone, and none about a box that is well', () => {
  const promtool = peer('promtool', 'apt-get install prometheus')
  if (promtool === undefined) return
  const cases = readFileSync(join(root, 'test/watch/alerts.promtool.yaml'), 'utf8')
  const tested = new Set([...cases.matchAll(/alertname="(\w+)"/g)].map(([, name]) => name!))
  expect([...tested].toSorted()).toEqual(rules.map(({ alert }) => alert).toSorted())
  for (const [kind, file] of [
    ['check', 'docs/alerts.yaml'],
    ['test', 'test/watch/alerts.promtool.yaml'],
  ]) {
    const { status, stdout, stderr } = spawnSync(promtool, [kind!, 'rules', join(root, file!)], { encoding: 'utf8' })
    expect({ status, stderr: stderr + (status === 0 ? '' : stdout) }).toEqual({ status: 0, stderr: '' })
  }
})

test('a metric or label that is not there would be seen', () => {
  const families = familiesIn(
    '# HELP a_total A\n# TYPE a_total counter\na_total{kind="x"} 1\n# HELP b_seconds B\n# TYPE b_seconds histogram\nb_seconds_bucket{le="1"} 1\n',
  )
  const declared = new Map([
    ['a_total', ['kind']],
    ['b_seconds', []],
  ])
  const wrong = (expression: string): string[] => strangersIn(expression, families, declared)
  expect(wrong('sum by (kind) (rate(a_total{kind=~"x|y"}[5m])) > 1.5e3 and on (instance) up{job="x"} == 0')).toEqual([])
  expect(wrong('histogram_quantile(0.9, sum by (le) (rate(b_seconds_bucket[5m])))')).toEqual([])
  expect(wrong('rate(c_total[5m]) / a_total')).toEqual(['c_total is not told'])
  expect(wrong('a_total{colour="red"}')).toEqual(['a_total has no label colour'])
  expect(wrong('sum by (colour) (a_total)')).toEqual(['nothing has the label colour'])
  expect(wrong('b_seconds')).toEqual(['b_seconds is not told'])
  expect(wrong('a_total_count')).toEqual(['a_total_count is not told'])
})
