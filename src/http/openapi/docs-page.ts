import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, extname, join } from 'node:path'
import type { Answer } from '../route.ts'

const folder = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'))

const files = ['swagger-ui.css', 'swagger-ui-bundle.js', 'favicon-32x32.png']

/** Swagger UI styles itself by attribute, hence the one inline allowance; nothing is fetched from anywhere else. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Pillarbox API</title>
<link rel="icon" href="/docs/favicon-32x32.png">
<link rel="stylesheet" href="/docs/swagger-ui.css">
</head>
<body>
<p><a href="/docs/README">All documentation</a> · <a href="/docs/api">API reference</a>, also as <a href="/docs/api.md">Markdown</a> ·
for agents: <code>/llms.txt</code> · <a href="/v1/openapi.json">OpenAPI</a></p>
<noscript>Trying calls needs JavaScript; the pages above do not.</noscript>
<div id="api"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
`

const start = `SwaggerUIBundle({
  url: '/v1/openapi.json?all=true',
  dom_id: '#api',
  deepLinking: true,
  validatorUrl: null,
  persistAuthorization: false,
  docExpansion: 'list',
})
`

/** The paths of the readable reference. */
export const docsPaths = ['/docs', '/docs/', '/docs/start.js', ...files.map((file) => `/docs/${file}`)]

const types: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.png': 'image/png',
}

/** One of `docsPaths`: the OpenAPI document made readable, all from this box. */
export async function docsPage(path: string): Promise<Answer> {
  const name = path.slice('/docs/'.length)
  const headers = { 'Content-Security-Policy': policy, 'Cache-Control': 'no-cache' }
  const type = types[extname(name)] ?? 'text/html; charset=utf-8'
  if (!files.includes(name)) return { status: 200, type, body: name === 'start.js' ? start : html, headers }
  const file = join(folder, name)
  const { size, mtime } = await stat(file)
  const ofFile = { 'Cache-Control': 'public, max-age=3600', 'Content-Length': String(size), 'Last-Modified': mtime.toUTCString() }
  return { status: 200, type, body: createReadStream(file), headers: { ...headers, ...ofFile } }
}
