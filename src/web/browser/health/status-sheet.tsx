import type { JSX } from 'preact'
import type { Status } from '../../../ops/status/model.ts'
import type { Loaded } from '../loaded.ts'
import { bytes, Mark, span } from '../widgets/format.tsx'
import { Fact, WhenLoaded } from '../widgets/listing.tsx'

/** Version, uptime, counts of the last 24 hours, and the disk. */
export function StatusSheet({ status }: { status: Loaded<Status> }): JSX.Element {
  return (
    <section class="sheet" aria-labelledby="box">
      <h2 id="box">The box</h2>
      <WhenLoaded of={status}>
        {({ version, uptime, failing, identities, disk, last_24_hours: day }) => (
          <dl class="facts">
            <Fact name="State">
              {failing.length === 0 ? (
                <Mark tone="good">healthy</Mark>
              ) : (
                <Mark tone="bad">{`failing: ${failing.join(', ')}`}</Mark>
              )}
            </Fact>
            <Fact name="Version">
              {version}, up {span(uptime)}
            </Fact>
            <Fact name="Identities">{identities.toLocaleString('en')}</Fact>
            <Fact name="E-mail, last 24 hours">
              {day.emails_received} received, {day.emails_delivered} delivered, {day.emails_bounced} bounced, {day.emails_failed}{' '}
              failed
            </Fact>
            <Fact name="SMS, last 24 hours">
              {day.sms_received} received, {day.sms_sent} sent, {day.sms_failed} failed
            </Fact>
            <Fact name="Disk">
              {disk.free === null ? 'free space unknown' : `${bytes(disk.free)} free`}, database {bytes(disk.database)}{' '}
              {disk.low && <Mark tone="bad">low: new data is refused</Mark>}
            </Fact>
          </dl>
        )}
      </WhenLoaded>
    </section>
  )
}
