/**
 * The first words of the paths that are the page's own: a browser that asks for anything below them is given the page, which then shows what
 * the rest of the path says.
 */
export const places = ['', 'setup', 'identities', 'domains', 'webhooks', 'keys', 'agents', 'account', 'health', 'jobs'] as const
