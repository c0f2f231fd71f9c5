import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { loadConfig } from '../../config.ts'
import { firstRun, type FirstRun } from '../../install/first-run.ts'
import { Journal } from '../../install/journal.ts'
import { type Places, placesOf } from '../../install/places.ts'
import { refusal } from '../../install/refusals.ts'
import { handOver, installUnits, makeFolders, removeUser } from '../../install/service-user.ts'
import { type InitChoice, settingsText } from '../../install/settings.ts'
import { checkMachine, type Finding, ownAddresses } from '../../install/machine.ts'
import { nameable, unitFiles, withPackage } from '../../install/units.ts'
import { addressRecords, formatOutcome, type InitOutcome, wholeZone, type ZoneRecord } from './report.ts'
import { runningBox } from '../support/box.ts'
import { Failure } from '../support/refuse.ts'
import { chosenBy, type InitOptions } from './questions.ts'
import { json as asJson, print, remark, withJson } from '../support/say.ts'
import { untilSignal } from '../support/job.ts'

/** `pillarbox init`: sets up a box that can be started. Never overwrites files, and removes what it wrote when it fails. */
export function addInitCommand(program: Command): void {
  const init = program
    .command('init')
    .description('set up a box: its settings, keys, DNS records and systemd units; as root, and without --data, as a service')
    .option('--domain <domain>', 'the domain of its addresses, such as agents.example.com')
    .option('--hostname <name>', 'host name of this machine, the target of the MX record (default: mx.<domain>)')
    .option('--email <address>', 'address to which mail for postmaster and abuse is forwarded')
    .option(
      '--data <directory>',
      'data directory (default: $PILLARBOX_DATA_DIR; else /var/lib/pillarbox as root, ./data otherwise)',
    )
    .option('-c, --config <file>', 'settings file to write (default: $PILLARBOX_CONFIG, else derived from the data directory)')
    .option(
      '--units <directory>',
      'directory of the systemd units (default: /etc/systemd/system for a service, else in the data directory)',
    )
    .option('--behind-proxy', 'a reverse proxy on this machine serves the API')
    .option('--agree-terms', "obtain certificates from Let's Encrypt, agreeing to its terms of service")
    .option('--offline', 'make no requests to other machines')
    .option('--yes', 'ask no questions')
  withJson(init).action((options: InitOptions) => untilSignal((signal) => run(options, signal)))
}

async function run(options: InitOptions, signal: AbortSignal): Promise<void> {
  process.umask(0o077)
  const root = process.getuid?.() === 0
  const { PILLARBOX_DATA_DIR, PILLARBOX_KEYS_DIR, PILLARBOX_CONFIG } = process.env
  const input = {
    data: options.data ?? (PILLARBOX_DATA_DIR || undefined),
    keys: PILLARBOX_KEYS_DIR || undefined,
    config: options.config ?? (PILLARBOX_CONFIG || undefined),
    units: options.units,
  }
  const places = withPackage(placesOf(input, { root, cwd: process.cwd() }))
  const journal = new Journal(places.log, removeUser)
  if (journal.unfinished) {
    if (journal.used(places.data)) throw new Failure(usedSince(places, journal), 'box_used')
    printProgress(options, `An earlier set-up was interrupted. Its files were removed (${journal.undo()}).`)
  }
  const units = nameable(places) ? unitFiles(places) : []
  const no = refusal(
    places,
    units.map(([file]) => file),
  )
  if (no) throw new Failure(...no)
  const choice = await chosenBy(options, lowPorts(root))
  const findings = await checkMachine({
    ...choice,
    outside: options.offline ? undefined : (choice.email?.split('@')[1] ?? 'gmail.com'),
    port: 25,
    servers: (process.env['PILLARBOX_DNS__SERVERS'] || undefined)?.split(',') ?? [],
    addresses: ownAddresses(),
  })
  for (const finding of findings) printProgress(options, `${finding.good ? 'ok  ' : '!!  '}${finding.text}`, journal)
  signal.throwIfAborted()
  begin(journal)
  try {
    const outcome = await make(places, choice, { units, findings, journal, signal })
    await print(options.json ? `${asJson(outcome)}\n` : formatOutcome(outcome, places))
    journal.finish()
  } catch (error) {
    const copy = journal.undo()
    throw new Failure(
      `${sentence(signal.aborted ? signal.reason : error)} The files it had written were removed (${copy}).`,
      'init_failed',
    )
  }
}

interface Work {
  units: [string, string][]
  findings: Finding[]
  journal: Journal
  signal: AbortSignal
}

async function make(places: Places, choice: InitChoice, { units, findings, journal, signal }: Work): Promise<InitOutcome> {
  makeFolders(places, journal)
  journal.put(places.passphrase, `${randomBytes(24).toString('base64')}\n`, 0o600)
  journal.put(places.config, settingsText(choice, places, new Date().toISOString().slice(0, 10)), 0o600)
  if (places.system) journal.link(join(places.data, 'pillarbox.yaml'), places.config)
  signal.throwIfAborted()
  const { first_key, setup_link, account, answer: domain } = await begun(places)
  signal.throwIfAborted()
  const addresses = addressRecords(choice.hostname, ownAddresses())
  const zone = join(places.config, '..', `${choice.domain}.zone`)
  journal.put(zone, wholeZone(addresses, domain.zone), 0o644)
  if (places.packaged !== true) installUnits(places, units, journal)
  if (places.system) handOver(places, [places.config, places.passphrase], journal)
  signal.throwIfAborted()
  return {
    data: places.data,
    keys: places.keys,
    config: places.config,
    domain: choice.domain,
    hostname: choice.hostname,
    zone,
    units: units.map(([file]) => file),
    log: places.log,
    dns_records: [...addresses, ...domain.dns_records],
    account,
    first_key,
    setup_link,
    warnings: [
      ...findings.filter(({ good }) => !good).map(({ text }) => text),
      ...(choice.lowPorts ? [] : ['Only root may open port 25 here, so mail is received at port 2525: forward port 25 to it.']),
      ...(units.length > 0 ? [] : ['No systemd units were written: they cannot contain paths with spaces or quotes.']),
    ],
  }
}

/** Starts the box once, which creates its keys, its account and its domain. */
async function begun(places: Places): Promise<FirstRun<{ dns_records: ZoneRecord[]; zone: string }>> {
  const env = { ...process.env, PILLARBOX_DATA_DIR: places.data }
  const config = await loadConfig({ file: places.config, env, cwd: process.cwd() })
  return firstRun({ ...config, data_dir: places.data, keys_dir: places.keys }, async () => {
    const box = await runningBox({ config: places.config, data: places.data })
    if (!box) throw new Failure(`The path of ${places.data} is too long for a socket in it: use a shorter one.`)
    const { data } = await box.call<{ data: { id: string; default: boolean; dns_records: ZoneRecord[] }[] }>('GET', '/v1/domains')
    const own = data.find(({ default: usual }) => usual)!
    return { dns_records: own.dns_records, zone: (await box.read(`/v1/domains/${own.id}/zone`)).toString() }
  })
}

function usedSince({ data }: Places, { file }: Journal): string {
  return (
    `${file} records an interrupted set-up, but the box in ${data} was used since. Nothing was changed; to keep the box, remove ${file}, ` +
    'and use --data for another one.'
  )
}

/** Starts the journal; a directory that is not writable becomes a sentence. */
function begin(journal: Journal): void {
  try {
    journal.begin()
  } catch (error) {
    throw new Failure(`${journal.file} cannot be written: ${sentence(error)}`, 'init_failed')
  }
}

function printProgress({ json }: InitOptions, text: string, journal?: Journal): void {
  journal?.note(text)
  if (!json) remark(`${text}\n`)
}

function sentence(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  return /[.!?]$/.test(message) ? message : `${message}.`
}

function lowPorts(root: boolean): boolean {
  const file = '/proc/sys/net/ipv4/ip_unprivileged_port_start'
  return root || (existsSync(file) && Number(readFileSync(file, 'utf8')) <= 25)
}
