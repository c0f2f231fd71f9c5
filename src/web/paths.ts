/** The first path segments of the page: for any path below them the box serves index.html, whose router handles the rest. */
export const places = ['', 'setup', 'identities', 'domains', 'webhooks', 'keys', 'agents', 'account', 'health', 'jobs'] as const
