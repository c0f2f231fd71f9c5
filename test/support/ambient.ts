/** What a program is given of our environment: where programs are, and where Node keeps what it compiled, as a box starts often here. */
export const ambient: Record<string, string> = {
  PATH: process.env['PATH'] ?? '',
  ...(process.env['NODE_COMPILE_CACHE'] === undefined ? {} : { NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] }),
}
