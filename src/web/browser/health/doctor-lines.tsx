import type { JSX } from 'preact'
import type { DoctorLine, DoctorReport, Status } from '../../../ops/doctor/model.ts'
import { post } from '../api.ts'
import { eventsOf, useResource } from '../loaded.ts'
import { Action } from '../widgets/action.tsx'
import { announce } from '../widgets/announcer.tsx'
import { CopyButton } from '../widgets/copy-button.tsx'
import { Section, WhenLoaded } from '../widgets/listing.tsx'
import { Mark, Time } from '../widgets/format.tsx'

const marks = {
  pass: { tone: 'good', word: 'passed' },
  warn: { tone: 'warn', word: 'warning' },
  fail: { tone: 'bad', word: 'failed' },
} as const

const order: Status[] = ['fail', 'warn', 'pass']

/** The results of the doctor with their fixes, the worst first. */
export function DoctorLines(): JSX.Element {
  const report = useResource<DoctorReport>('/v1/doctor', eventsOf('doctor.'), true)
  const look = async (): Promise<void> => {
    const { pass, warn, fail } = await post<DoctorReport>('/v1/doctor', {}, { idempotent: true })
    await report.reload()
    announce(`Checks done: ${pass} passed, ${warn} warnings, ${fail} failed.`)
  }
  return (
    <Section id="doctor" title="Doctor" tools={<Action run={look}>Run checks</Action>}>
      <WhenLoaded of={report}>
        {({ lines, pass, warn, fail, checked_at }) => (
          <>
            <p class="faint">
              {checked_at === null ? (
                'No check has run yet.'
              ) : (
                <>
                  {pass} passed, {warn} warnings, {fail} failed; last run <Time at={checked_at} />.
                </>
              )}
            </p>
            {lines.length > 0 && (
              <ul class="rows">
                {order
                  .flatMap((status) => lines.filter((line) => line.status === status))
                  .map((line) => (
                    <CheckLine key={`${line.name} ${line.subject} ${line.box ?? ''}`} line={line} />
                  ))}
              </ul>
            )}
          </>
        )}
      </WhenLoaded>
    </Section>
  )
}

function CheckLine({ line: { name, subject, status, message, fix, since, box } }: { line: DoctorLine }): JSX.Element {
  const { tone, word } = marks[status]
  return (
    <li>
      <Mark tone={tone}>{word}</Mark>
      <span class="grow">
        <strong>{name}</strong> <span class="faint">{box === undefined ? subject : `${box}: ${subject}`}</span>
        <br />
        {message}
        {fix !== null && (
          <>
            <br />
            <code>{fix}</code> <CopyButton text={fix} what={`the fix for ${name} ${subject}`} />
          </>
        )}
      </span>
      {status !== 'pass' && (
        <span class="faint">
          since <Time at={since} />
        </span>
      )}
    </li>
  )
}
