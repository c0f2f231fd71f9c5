import type { Typed } from '../widgets/form.tsx'

interface Attached {
  filename: string
  content_type?: string
  content: string
}

/** The request of a form: lists of recipients, a time in UTC, files in base64. */
export async function sendRequestOf(typed: Typed, form: FormData): Promise<Record<string, unknown>> {
  const { to, cc, bcc, send_at, ...rest } = typed
  const attachments = await Promise.all(form.getAll('attachments').filter(isFile).map(attached))
  return {
    ...rest,
    ...addressed({ to, cc, bcc }),
    ...(typeof send_at === 'string' && send_at !== '' ? { send_at: new Date(send_at).toISOString() } : {}),
    ...(attachments.length > 0 ? { attachments } : {}),
  }
}

function addressed(fields: Record<string, string | true | undefined>): Record<string, string | string[]> {
  const given = Object.entries(fields).flatMap(([name, value]) => {
    if (typeof value !== 'string' || (value.trim() === '' && name !== 'to')) return []
    const all = addressesIn(value)
    return [[name, all.length > 1 ? all : value.trim()] as const]
  })
  return Object.fromEntries(given)
}

/** Splits addresses at commas outside of quotes: `"Lovelace, Ada" <ada@example.com>`. */
function addressesIn(text: string): string[] {
  return (text.match(/(?:"(?:\\.|[^"\\])*"?|[^,"])+/g) ?? []).map((one) => one.trim()).filter((one) => one !== '')
}

function isFile(value: FormDataEntryValue): value is File {
  return value instanceof File && value.name !== ''
}

async function attached(file: File): Promise<Attached> {
  const octets = new Uint8Array(await file.arrayBuffer())
  let text = ''
  // in blocks, as a call takes a limited number of arguments
  for (let at = 0; at < octets.length; at += 32_768) text += String.fromCharCode(...octets.subarray(at, at + 32_768))
  return { filename: file.name, ...(file.type === '' ? {} : { content_type: file.type }), content: btoa(text) }
}
