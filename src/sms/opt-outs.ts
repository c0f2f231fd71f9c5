import { type Reader, sql, type Transaction } from '../store/database.ts'

/** The opt-out words of the CTIA handbook, and those of other languages. The message must be exactly the word. */
const stop = words(`stop stopall unsubscribe cancel end quit optout revoke
  stopp abmelden abbestellen arret arrêt désabonner desabonner alto baja cancelar parar detener sair
  annulla basta ferma afmelden stoppa avsluta avmeld wypisz стоп отписаться 停止 配信停止 退订 退訂 수신거부 إيقاف`)
const start = words(`start unstop optin subscribe
  anmelden commencer iniciar inicio inizia aanmelden börja старт 開始 订阅 訂閱 수신동의 ابدأ`)

/** The opt-out or opt-in of a message; null for any other message. */
export function inputOf(body: string): 'stop' | 'start' | null {
  const word = body
    .slice(0, 100)
    .normalize('NFKC')
    .trim()
    .replace(/^["'“”«»]+|["'“”«».!?,;。]+$/gu, '')
    // opt out, opt-out, stop all
    .replace(/[\s-]+/g, '')
    .toLowerCase()
  return stop.has(word) ? 'stop' : start.has(word) ? 'start' : null
}

/** True if the peer opted out of messages from this number. */
export async function hasOptedOut(reader: Reader, number: string, peer: string): Promise<boolean> {
  return (await reader.get(sql`SELECT 1 FROM sms_opt_outs WHERE number = ${number} AND peer = ${peer}`)) !== undefined
}

/** Stores the opt-out or opt-in of a peer for this number; `at` is ISO 8601. */
export async function noteInput(
  tx: Transaction,
  input: 'stop' | 'start',
  number: string,
  peer: string,
  at: string,
): Promise<void> {
  await tx.run(
    input === 'stop'
      ? sql`INSERT INTO sms_opt_outs (number, peer, since) VALUES (${number}, ${peer}, ${at}) ON CONFLICT DO NOTHING`
      : sql`DELETE FROM sms_opt_outs WHERE number = ${number} AND peer = ${peer}`,
  )
}

function words(text: string): ReadonlySet<string> {
  return new Set(text.split(/\s+/).filter((word) => word !== ''))
}
