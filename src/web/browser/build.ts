import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { build, type Metafile, type Plugin } from 'esbuild'

/** Builds the page into dist/page: index.html and its assets in assets/, whose names contain a hash of their content. */

const root = join(import.meta.dirname, '..', '..', '..')
const place = join(root, 'dist', 'page')
/** The new build is written beside the former one, which stays until the new one is complete. */
const next = join(root, 'dist', `page.${process.pid}`)
const html = readFileSync(join(import.meta.dirname, 'index.html'), 'utf8')
/** index.html refers to its sources as `./start.tsx`. */
const sources = [...html.matchAll(/(?:href|src)="\.\/([^"]+)"/g)].map(([, name]) => name!)

/** The modules that views share, so that a view is loaded in a few files: split by which views use them, they would be one file for each set of views. */
const shared: Plugin = {
  name: 'shared',
  setup(esbuild) {
    esbuild.onResolve({ filter: /^shared$/ }, ({ path }) => ({ path, namespace: 'shared' }))
    esbuild.onLoad({ filter: /./, namespace: 'shared' }, () => {
      const files = ['.', 'widgets'].flatMap((folder) =>
        readdirSync(join(import.meta.dirname, folder)).map((name) => `./${folder}/${name}`),
      )
      const modules = files.filter((file) => /\.tsx?$/.test(file) && !/\/(?:build|start)\./.test(file))
      return { contents: modules.map((name) => `import '${name}'\n`).join(''), resolveDir: import.meta.dirname }
    })
  },
}

try {
  const { metafile } = await build({
    entryPoints: sources.map((name) => join(import.meta.dirname, name)),
    outdir: next,
    absWorkingDir: root,
    entryNames: 'assets/[name]-[hash]',
    chunkNames: 'assets/[name]-[hash]',
    publicPath: '/',
    bundle: true,
    splitting: true,
    // every file imports them
    inject: ['shared'],
    plugins: [shared],
    minify: true,
    charset: 'utf8',
    format: 'esm',
    target: 'es2022',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    // an image in a style sheet would be a data: URL otherwise; files are cached by name
    loader: { '.svg': 'copy' },
    legalComments: 'none',
    metafile: true,
    logLevel: 'warning',
  })
  mkdirSync(next, { recursive: true })
  writeFileSync(join(next, 'index.html'), pageOf(metafile))
  rmSync(place, { recursive: true, force: true })
  renameSync(next, place)
} catch (error) {
  rmSync(next, { recursive: true, force: true })
  process.stderr.write(`The page was not built: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
}

/** index.html with the names of the built files and preload links for the modules needed at once. */
function pageOf({ outputs }: Metafile): string {
  const built = new Map(
    Object.entries(outputs).map(([output, { entryPoint, inputs }]) => [entryPoint ?? Object.keys(inputs)[0], output]),
  )
  const outputOf = (name: string): string => built.get(relative(root, join(import.meta.dirname, name)))!
  const needed = (output: string): string[] =>
    outputs[output]!.imports.filter(({ kind }) => kind === 'import-statement').flatMap(({ path }) => [path, ...needed(path)])
  const early = new Set(sources.flatMap((name) => needed(outputOf(name))))
  const links = [...early].map((output) => `    <link rel="modulepreload" href="${url(output)}" />\n`).join('')
  return sources
    .reduce((text, name) => text.replace(`"./${name}"`, () => `"${url(outputOf(name))}"`), html)
    .replace('  </head>', () => `${links}  </head>`)
}

function url(output: string): string {
  return `/${relative(next, join(root, output))}`
}
