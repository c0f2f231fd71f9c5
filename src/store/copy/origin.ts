/** What a copy is a copy of: a box at one moment. A box that was started since is at another. */
interface Origin {
  box_id: string
  moment: unknown
}

/** Says at which moment a database is; a start of the box changes it. */
export const momentQuery = `SELECT (SELECT head_seq FROM audit_chain) AS audit, (SELECT coalesce(max(seq), 0) FROM events) AS events,
  (SELECT probed FROM box) AS probed, (SELECT master_key_name FROM box) AS master_key`

/** The origin as it is noted in an unfinished copy. */
export function originOf(box_id: string, moment: unknown): string {
  const origin: Origin = { box_id, moment }
  return JSON.stringify(origin)
}

/** True if an unfinished copy is one of this box, of any moment. */
export function isOfBox(origin: string, box_id: string): boolean {
  return (JSON.parse(origin) as Origin).box_id === box_id
}
