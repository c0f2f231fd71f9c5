import { receivingRoles } from '../../core/role-names.ts'
import { join, sql } from '../../store/database.ts'
import type { Database } from '../../store/database.ts'
import { about } from '../check.ts'
import type { Check } from '../check.ts'

interface Needs {
  database: Database
  /** The box's own domain. */
  domain: string
  /** The account of the operator. */
  account: string
}

/** Identities of other accounts at whose addresses certificate authorities and strangers believe to reach who runs the box: made before that was refused. */
export function operatorNames({ database, domain, account }: Needs): Check {
  return {
    name: 'operator_names',
    pace: 'usual',
    async run() {
      const addresses = [...receivingRoles].map((name) => `${name}@${domain}`)
      const rows = await database.all<{ address: string; id: string; account_id: string }>(
        sql`SELECT address, identities.id, identities.account_id FROM addresses JOIN identities ON identities.id = addresses.identity_id
          WHERE address IN (${join(addresses)}) AND status <> 'deleted' AND account_id <> ${account} ORDER BY address`,
      )
      if (rows.length === 0)
        return [about('operator_names', 'all').pass(`No other account receives what comes for the operator of ${domain}.`)]
      return rows.map(({ address, id, account_id }) =>
        about('operator_names', address).fail(
          `It is an identity of the account ${account_id}, which can have certificates issued for ${domain} and answers for the box.`,
          `Tell its account, and delete it: pillarbox identity delete ${id} --account ${account_id} --yes; mail to it then comes to the operator.`,
        ),
      )
    },
  }
}
