import { setTimeout as sleep } from 'node:timers/promises'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { type Database, sql, type Transaction } from '../../src/store/database.ts'
import { openedWithTable } from '../store/opened.ts'
import { folder } from '../support/folder.ts'

const add = (v: string | number): ((tx: Transaction) => Promise<{ changes: number }>) => {
  return (tx) => tx.run(sql`INSERT INTO t (v) VALUES (${v})`)
}

/** What every engine must do. `open` answers an empty store with a table `t (id INTEGER PRIMARY KEY, v)`, closed by the test. */
function storeContract(name: string, open: () => Promise<Database>): void {
  describe(`the store's contract: ${name}`, () => {
    let database: Database
    beforeEach(async () => {
      database = await open()
      const opened = database
      onTestFinished(() => opened.close())
    })

    const kept = async (): Promise<unknown[]> =>
      (await database.all<{ v: unknown }>(sql`SELECT v FROM t ORDER BY id`)).map((row) => row.v)

    it('shows a commit to whoever reads after it', async () => {
      expect(await database.transaction(add('a'))).toEqual({ changes: 1 })
      expect(await kept()).toEqual(['a'])
      expect(await database.get(sql`SELECT v FROM t WHERE v = ${'b'}`)).toBeUndefined()
    })

    it('leaves nothing of work that throws, and tells why', async () => {
      const changing = database.transaction(async (tx) => {
        await add('a')(tx)
        throw new RangeError('changed my mind')
      })
      await expect(changing).rejects.toThrow(new RangeError('changed my mind'))
      expect(await kept()).toEqual([])
    })

    it('leaves nothing of work that throws before it awaits anything', async () => {
      const failing = database.transaction(() => {
        throw new RangeError('at once')
      })
      await expect(failing).rejects.toThrow('at once')
      await database.transaction(add('after'))
      expect(await kept()).toEqual(['after'])
    })

    it('does not let one failure harm those that commit together with it', async () => {
      const results = await Promise.allSettled([
        database.transaction(add('a')),
        database.transaction(async (tx) => {
          await add('b')(tx)
          await tx.run(sql`INSERT INTO nowhere VALUES (1)`)
        }),
        database.transaction(add('c')),
      ])
      expect(results.map((result) => result.status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
      expect(await kept()).toEqual(['a', 'c'])
    })

    it('goes on after a statement that failed and was caught inside the work', async () => {
      await database.transaction(async (tx) => {
        await tx.run(sql`INSERT INTO t (id, v) VALUES (1, 'a')`)
        await expect(tx.run(sql`INSERT INTO t (id, v) VALUES (1, 'b')`)).rejects.toThrow(/unique/i)
        await tx.run(sql`INSERT INTO t (id, v) VALUES (2, 'c')`)
      })
      expect(await kept()).toEqual(['a', 'c'])
    })

    it('runs many at once, one after the other: no update is lost', async () => {
      await database.transaction(add(0))
      const raise = (): Promise<number> =>
        database.transaction(async (tx) => {
          const row = await tx.get<{ v: number }>(sql`SELECT v FROM t`)
          await tx.run(sql`UPDATE t SET v = ${row!.v + 1}`)
          return row!.v
        })
      const seen = await Promise.all(Array.from({ length: 300 }, raise))
      expect(await kept()).toEqual([300])
      expect(new Set(seen).size).toBe(300)
    })

    it('shows nothing of a transaction to readers outside before its commit', async () => {
      let during: unknown[] | undefined
      await database.transaction(async (tx) => {
        await add('a')(tx)
        expect(await tx.all(sql`SELECT v FROM t`)).toHaveLength(1)
        during = await kept()
      })
      expect(during).toEqual([])
      expect(await kept()).toEqual(['a'])
    })

    it('calls listeners after the commit, in order, and never for work that failed', async () => {
      const heard: string[] = []
      const announce = (text: string, fails = false): Promise<void> =>
        database.transaction(async (tx) => {
          await add(text)(tx)
          tx.afterCommit(() => heard.push(text))
          if (fails) throw new Error('no')
        })
      const all = Promise.allSettled([announce('a'), announce('b', true), announce('c')])
      expect(heard).toEqual([])
      await all
      await sleep(20)
      expect(heard).toEqual(['a', 'c'])
    })

    it('does not let a failing listener harm the writer or the next listener', async () => {
      const heard: string[] = []
      await database.transaction(async (tx) => {
        await add('a')(tx)
        tx.afterCommit(() => {
          throw new Error('a listener’s own trouble')
        })
        tx.afterCommit(() => heard.push('second'))
      })
      await sleep(20)
      expect(heard).toEqual(['second'])
      expect(await kept()).toEqual(['a'])
    })

    it('gives values back as they went in', async () => {
      const octets = Uint8Array.from({ length: 256 }, (_, index) => index)
      const values = [
        null,
        '',
        'zażółć 🐦\u0000 ß',
        0,
        -1,
        1.5,
        Number.MAX_SAFE_INTEGER,
        Number.MIN_SAFE_INTEGER,
        octets,
        new Uint8Array(0),
      ]
      for (const v of values) await database.transaction((tx) => tx.run(sql`INSERT INTO t (v) VALUES (${v})`))
      const back = (await kept()).map((v) => (v instanceof Uint8Array ? Uint8Array.from(v) : v))
      expect(back).toEqual(values)
    })

    it('takes values as values, whatever they spell', async () => {
      const nasty = `'); DROP TABLE t; --`
      await database.transaction(add(nasty))
      expect(await database.get(sql`SELECT v FROM t WHERE v = ${nasty}`)).toMatchObject({ v: nasty })
    })

    it('refuses what it could not give back', async () => {
      for (const v of [new Date(0), { v: 1 }, Number.NaN, undefined])
        await expect(database.transaction((tx) => tx.run(sql`INSERT INTO t (v) VALUES (${v})`))).rejects.toThrow(
          /cannot be (stored|bound)/,
        )
      expect(await kept()).toEqual([])
    })

    it('answers slow reads aside, and gives up at the deadline with a fault', async () => {
      await database.transaction(add('a'))
      expect(await database.slow(sql`SELECT v FROM t WHERE v = ${'a'}`, 20_000)).toEqual([{ v: 'a' }])
      const endless = sql`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000000) SELECT count(*) AS n FROM n`
      const [late, behind] = await Promise.allSettled([database.slow(endless, 20), database.slow(sql`SELECT v FROM t`, 20_000)])
      expect(late).toMatchObject({ status: 'rejected', reason: { type: 'internal_error', code: 'too_slow' } })
      expect(behind).toMatchObject({ status: 'fulfilled', value: [{ v: 'a' }] })
    })

    it('does not let a slow read write', async () => {
      await expect(database.slow(sql`INSERT INTO t (v) VALUES ('a')`, 20_000)).rejects.toThrow(/read/)
      expect(await kept()).toEqual([])
    })

    it('refuses a transaction once its work has ended', async () => {
      let leaked: Transaction | undefined
      await database.transaction(async (tx) => void (leaked = tx))
      await expect(leaked!.run(sql`INSERT INTO t (v) VALUES ('late')`)).rejects.toThrow('after its work had ended')
      expect(() => leaked!.afterCommit(() => {})).toThrow('after its work had ended')
      expect(await kept()).toEqual([])
    })

    it('refuses a transaction inside the work of another, which would wait for itself', async () => {
      await expect(database.transaction(() => database.transaction(add('inner')))).rejects.toThrow('inside the work of another')
      await database.transaction(add('after'))
      expect(await kept()).toEqual(['after'])
    })

    it('finishes what it took before it closes, and refuses what comes later', async () => {
      const taken = Array.from({ length: 20 }, (_, index) => database.transaction(add(index)))
      const closing = database.close()
      const late = database.transaction(add('late'))
      await expect(late).rejects.toMatchObject({ type: 'internal_error', code: 'stopping' })
      expect(await Promise.all(taken)).toHaveLength(20)
      await closing
      await database.close()
      await expect(database.get(sql`SELECT 1`)).rejects.toMatchObject({ code: 'stopping' })
      await expect(database.slow(sql`SELECT 1`, 1000)).rejects.toMatchObject({ code: 'stopping' })
    })

    it('writes a mark with the first commit of the work it belongs to, once, and with nothing else', async () => {
      const work = async (): Promise<void> => {
        await expect(
          database.transaction(async (tx) => {
            await add('lost')(tx)
            throw new RangeError('changed my mind')
          }),
        ).rejects.toThrow('changed my mind')
        expect(await kept()).toEqual(['before'])
        await database.transaction(add('first'))
        await new Promise((resolve) => setImmediate(resolve))
        await database.transaction(add('second'))
      }
      await database.transaction(add('before'))
      await database.marking(add('mark'), work)
      await database.transaction(add('after'))
      expect(await kept()).toEqual(['before', 'mark', 'first', 'second', 'after'])
      expect(await database.marking(add('unused'), async () => 7)).toBe(7)
      expect(await kept()).toHaveLength(5)
    })

    it('records work in the first of its transactions that wrote and that the record takes, or in none', async () => {
      const seen: unknown[] = []
      const record = async (tx: Transaction, result: unknown): Promise<boolean> => {
        seen.push(result)
        if (result !== 'made') return false
        await add('record')(tx)
        return true
      }
      const recording = { record, recorded: false }
      let late: Promise<unknown> | undefined
      await database.recording(recording, async () => {
        expect(await database.transaction((tx) => tx.get(sql`SELECT 1`))).toBeDefined()
        await database.transaction(add('first'))
        const failing = database.transaction(async (tx) => {
          await add('lost')(tx)
          throw new RangeError('changed my mind')
        })
        await expect(failing).rejects.toThrow('changed my mind')
        // in one commit: the record is written once
        await Promise.all(['second', 'third'].map((v) => database.transaction((tx) => add(v)(tx).then(() => 'made'))))
        await database.transaction((tx) => add('fourth')(tx).then(() => 'made'))
        late = sleep(20).then(() => database.transaction((tx) => add('late')(tx).then(() => 'made')))
      })
      expect(recording.recorded).toBe(true)
      await late
      expect(await kept()).toEqual(['first', 'second', 'record', 'third', 'fourth', 'late'])
      expect(seen).toEqual([{ changes: 1 }, 'made'])
    })

    it('makes no change that could not be recorded, and records what comes after', async () => {
      let broken = true
      const recording = {
        recorded: false,
        record: async (tx: Transaction): Promise<boolean> => {
          await add('record')(tx)
          if (broken) throw new RangeError('no record')
          return true
        },
      }
      await database.recording(recording, async () => {
        await expect(database.transaction(add('unrecorded'))).rejects.toThrow('no record')
        expect([recording.recorded, await kept()]).toEqual([false, []])
        broken = false
        await database.transaction(add('recorded'))
      })
      expect([recording.recorded, await kept()]).toEqual([true, ['recorded', 'record']])
      // what others do meanwhile is not part of it
      await database.transaction(add('after'))
      expect(await kept()).toEqual(['recorded', 'record', 'after'])
    })

    it('records work whose mark is written too', async () => {
      const record = async (tx: Transaction): Promise<boolean> => add('record')(tx).then(() => true)
      const recording = { record, recorded: false }
      await database.marking(add('mark'), () => database.recording(recording, () => database.transaction(add('work'))))
      expect(await kept()).toEqual(['mark', 'work', 'record'])
      // the mark alone is not the work
      const reading = { record, recorded: false }
      await database.marking(add('mark'), () =>
        database.recording(reading, () => database.transaction((tx) => tx.get(sql`SELECT 1`))),
      )
      expect([reading.recorded, await kept()]).toEqual([false, ['mark', 'work', 'record', 'mark']])
    })

    it('probes', async () => {
      await database.probe()
      expect(await database.get(sql`SELECT probed FROM box`)).toMatchObject({ probed: 1 })
    })
  })
}

storeContract('SQLite', async () => (await openedWithTable(folder())).database)
