import { defineConfig } from 'vite'

/** Node of any age that Vite runs on may build it: `prepare` does not choose. */
export default defineConfig({
  root: import.meta.dirname,
  base: '/',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: '../../../dist/page',
    emptyOutDir: true,
    target: 'es2022',
    // an image in the text of a style sheet would be a data: URL; files are cached by name
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // built from what is in the tree; a map would be as large as all of it
    sourcemap: false,
    reportCompressedSize: false,
  },
  logLevel: 'warn',
})
