import { setTimeout as pause } from 'node:timers/promises'
import { monotonic } from '../program.ts'

/** Of one thing done at its time: when it should have begun, and when it was answered; milliseconds of the machine's clock. */
export interface Paced {
  number: number
  scheduled: number
  answered: number
}

/** Begins `count` things at a fixed rate, whether or not those before are answered; resolves when all are. */
export async function atRate(
  { perSecond, count, first }: { perSecond: number; count: number; first: number },
  act: (number: number) => Promise<unknown>,
): Promise<Paced[]> {
  const began = monotonic() + 20
  const under: Promise<Paced>[] = []
  const one = async (number: number, scheduled: number): Promise<Paced> => {
    await act(number)
    return { number, scheduled, answered: monotonic() }
  }
  for (let done = 0; done < count;) {
    // timers come up to a millisecond late: what is due by then is begun together
    const due = Math.min(count, Math.floor(((monotonic() - began) * perSecond) / 1000) + 1)
    for (; done < due; done++) under.push(one(first + done, began + (done * 1000) / perSecond))
    await pause(1)
  }
  return Promise.all(under)
}
