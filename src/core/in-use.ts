/** Another process has the data directory. */
export class InUse extends Error {}
