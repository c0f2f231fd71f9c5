/** One package in package-lock.json (lockfileVersion 3). */
interface Locked {
  name?: string
  version: string
  license?: string
  integrity?: string
  dependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
  peerDependencies?: Record<string, string>
}

export interface LockFile {
  name: string
  version: string
  packages: Record<string, Locked>
}

/**
 * The software bill of materials of a release in CycloneDX 1.5: the packages at these paths of the lock file (`node_modules/koa`), with
 * licence, checksum and dependencies. It has no serial number and the given time, so that it is reproducible.
 */
export function bill(lock: LockFile, places: readonly string[], time: number): string {
  const shipped = new Set(places)
  const own = lock.packages['']!
  const root = `pkg:npm/${lock.name}@${lock.version}`
  const document = {
    $schema: 'http://cyclonedx.org/schema/bom-1.5.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,
    metadata: {
      timestamp: new Date(time * 1000).toISOString(),
      component: {
        'bom-ref': root,
        type: 'application',
        name: lock.name,
        version: lock.version,
        licenses: licenses(own),
        purl: root,
      },
    },
    components: [...new Map(places.map((place) => [reference(lock, place), component(lock, place)])).values()],
    dependencies: ['', ...places].map((place) => ({
      ref: place === '' ? root : reference(lock, place),
      dependsOn: [...new Set(needs(lock, place, shipped).map((one) => reference(lock, one)))],
    })),
  }
  return `${JSON.stringify(document, null, 2)}\n`
}

/** The paths of the packages that these names require, transitively, from the top of the lock file. */
export function closure(lock: LockFile, names: readonly string[]): string[] {
  const found = new Set<string>()
  const add = (place: string): void => {
    if (found.has(place)) return
    found.add(place)
    for (const one of needs(lock, place, undefined)) add(one)
  }
  for (const name of names) add(`node_modules/${name}`)
  return [...found]
}

function component(lock: LockFile, place: string): object {
  const one = lock.packages[place]!
  const ref = reference(lock, place)
  const [algorithm, digest] = one.integrity?.split('-', 2) ?? []
  const content = digest === undefined ? undefined : Buffer.from(digest, 'base64').toString('hex')
  return {
    'bom-ref': ref,
    type: 'library',
    name: nameAt(lock, place),
    version: one.version,
    ...(content === undefined ? {} : { hashes: [{ alg: algorithm!.toUpperCase().replace('SHA', 'SHA-'), content }] }),
    licenses: licenses(one),
    purl: ref,
  }
}

function licenses({ license }: Locked): object[] {
  return license === undefined ? [] : [{ expression: license }]
}

/** A package URL; the `@` of a scope is written `%40`. */
function reference(lock: LockFile, place: string): string {
  return `pkg:npm/${nameAt(lock, place).replace('@', '%40')}@${lock.packages[place]!.version}`
}

function nameAt(lock: LockFile, place: string): string {
  return lock.packages[place]!.name ?? place.slice(place.lastIndexOf('node_modules/') + 'node_modules/'.length)
}

/** Resolves a dependency as Node.js does: in the package's own node_modules, else in those of its parents. */
function needs(lock: LockFile, place: string, among: ReadonlySet<string> | undefined): string[] {
  const { dependencies, optionalDependencies, peerDependencies } = lock.packages[place]!
  return Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies })
    .toSorted()
    .flatMap((name) => {
      for (let above: string | undefined = place; above !== undefined; above = parent(above)) {
        const candidate = `${above === '' ? '' : `${above}/`}node_modules/${name}`
        if (candidate in lock.packages) return among === undefined || among.has(candidate) ? [candidate] : []
      }
      return []
    })
}

function parent(place: string): string | undefined {
  if (place === '') return undefined
  return place.slice(0, Math.max(0, place.lastIndexOf('/node_modules/')))
}
