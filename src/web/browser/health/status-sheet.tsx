import type { JSX } from 'preact'
import type { Status } from '../../../ops/status/model.ts'
import type { Loaded } from '../loaded.ts'
import { bytes, span } from '../widgets/format.tsx'
import { WhenLoaded } from '../widgets/listing.tsx'
import { Mark } from '../widgets/mark.tsx'

/** Version, uptime, counts of the last 24 hours, and the disk. */
export function StatusSheet({ status }: { status: Loaded<Status> }): JSX.Element {
  return (
    <section class="sheet" aria-labelledby="box">
      <h2 id="box">The box</h2>
      <WhenLoaded of={status}>
        {({ version, uptime, failing, identities, disk, last_24_hours: day }) => (
          <dl class="facts">
            <dt>State</dt>
            <dd>
              {failing.length === 0 ? (
                <Mark tone="good">healthy</Mark>
              ) : (
                <Mark tone="bad">{`failing: ${failing.join(', ')}`}</Mark>
              )}
            </dd>
            <dt>Version</dt>
            <dd>
              {version}, up {span(uptime)}
            </dd>
            <dt>Identities</dt>
            <dd>{identities.toLocaleString('en')}</dd>
            <dt>E-mail, last 24 hours</dt>
            <dd>
              {day.emails_received} received, {day.emails_delivered} delivered, {day.emails_bounced} bounced, {day.emails_failed}{' '}
              failed
            </dd>
            <dt>SMS, last 24 hours</dt>
            <dd>
              {day.sms_received} received, {day.sms_sent} sent, {day.sms_failed} failed
            </dd>
            <dt>Disk</dt>
            <dd>
              {disk.free === null ? 'free space unknown' : `${bytes(disk.free)} free`}, database {bytes(disk.database)}{' '}
              {disk.low && <Mark tone="bad">low: new data is refused</Mark>}
            </dd>
          </dl>
        )}
      </WhenLoaded>
    </section>
  )
}
