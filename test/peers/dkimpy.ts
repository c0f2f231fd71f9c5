import { Answering } from '../support/answering.ts'
import { absent } from '../support/peer.ts'
import { run } from '../support/program.ts'

// Debian's packages are those of its own Python, whichever other comes first in the path
const python = '/usr/bin/python3'

/** The Python that has dkimpy, which knows Ed25519 (RFC 8463); undefined when it is not installed. */
export async function pythonWithDkim(): Promise<string | undefined> {
  const found = await run(python, ['-c', 'import dkim, nacl.signing']).catch(() => undefined)
  return found?.code === 0 ? python : absent('dkimpy', 'dkimpy is not installed (apt-get install python3-dkim python3-nacl)')
}

const script = `
import base64, dkim, json, re, sys
def verdicts(message, records):
    def answer(name, timeout=5):
        return records.get(name.decode().rstrip('.'), '').encode() or None
    for index, field in enumerate(v for n, v in dkim.rfc822_parse(message)[0] if n.lower() == b'dkim-signature'):
        algorithm = re.search(rb'[; ]a=([a-z0-9-]+)', field).group(1).decode()
        try:
            verdict = 'pass' if dkim.DKIM(message).verify(idx=index, dnsfunc=answer) else 'fail'
        except dkim.DKIMException as error:
            verdict = type(error).__name__
        yield verdict + ' ' + algorithm
for line in sys.stdin:
    question = json.loads(line)
    print(json.dumps(list(verdicts(base64.b64decode(question['raw']), question['records']))), flush=True)`

/** dkimpy in a process of its own. */
export class Dkimpy {
  readonly #python: Answering<string[]>

  constructor(program = python) {
    this.#python = new Answering(program, ['-c', script])
  }

  /** What dkimpy says of each signature, `pass rsa-sha256` and the like, RSA first; the DNS says these texts, by name. */
  async verdicts(raw: Buffer, records: Record<string, string>): Promise<string[]> {
    return (await this.#python.ask({ raw: raw.toString('base64'), records })).toSorted().toReversed()
  }

  close(): void {
    this.#python.close()
  }
}

/** As `Dkimpy`, for one message. */
export async function byDkimpy(program: string, raw: Buffer, records: Record<string, string>): Promise<string[]> {
  const dkimpy = new Dkimpy(program)
  try {
    return await dkimpy.verdicts(raw, records)
  } finally {
    dkimpy.close()
  }
}
