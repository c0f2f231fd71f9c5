import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import send from 'koa-send'

type Context = Parameters<typeof send>[0]

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
<noscript>This page needs JavaScript. The same description is at <a href="/v1/openapi.json">/v1/openapi.json</a>.</noscript>
<div id="api"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
`

const start = `SwaggerUIBundle({
  url: '/v1/openapi.json',
  dom_id: '#api',
  deepLinking: true,
  validatorUrl: null,
  persistAuthorization: false,
  docExpansion: 'list',
})
`

/** The paths of the readable reference. */
export const docsPaths = ['/docs', '/docs/', '/docs/start.js', ...files.map((file) => `/docs/${file}`)]

/** Serves one of `docsPaths`: the OpenAPI document made readable, all from this box. */
export async function serveDocs(context: Context): Promise<void> {
  context.set('Content-Security-Policy', policy)
  const file = context.path.slice('/docs/'.length)
  if (files.includes(file)) {
    context.set('Cache-Control', 'public, max-age=3600')
    await send(context, file, { root: folder, brotli: false, gzip: false })
    return
  }
  context.set('Cache-Control', 'no-cache')
  context.status = 200
  context.type = file === 'start.js' ? 'text/javascript; charset=utf-8' : 'text/html; charset=utf-8'
  context.body = file === 'start.js' ? start : html
}
