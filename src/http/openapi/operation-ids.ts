/**
 * The ids of operations whose summary was reworded. Clients are generated from the ids, so that an id never changes; that of any other
 * operation is its summary. By method and path as the route declares them.
 */
export const keptIds: Readonly<Record<string, string>> = {
  'GET /stats': 'getWhatWentOn',
  'GET /session': 'whoIsSignedIn',
  'GET /doctor': 'getWhatDoctorSawLast',
  'POST /doctor': 'haveDoctorLookNow',
  'POST /backups': 'makeBackup',
  'GET /status': 'getHowBoxIs',
  'POST /reload': 'readSettingsAgain',
  'GET /openapi.json': 'readThisDescription',
  'POST /account/totp': 'beginSecondFactor',
  'POST /sms/twilio/inbound': 'takeMessageFromTwilio',
  'POST /sms/twilio/status': 'takeStatusFromTwilio',
  'POST /sms/http/inbound': 'takeMessageFromBridge',
  'POST /sms/http/status': 'takeStatusFromBridge',
  'POST /sms/android/events': 'takeEventFromPhone',
  'POST /sms/loopback/inject': 'putMessageIntoLoopback',
  'POST /api-keys/:id/rotate': 'giveKeyNewSecret',
  'POST /accounts/:id/setup-link': 'makeLinkToSetFirstPassword',
  'POST /identities/:id/phone': 'giveIdentityPhoneNumber',
  'DELETE /identities/:id/phone': 'takePhoneNumberFromIdentity',
  'POST /identities/:id/totp': 'setUpOneTimePassword',
  'POST /cards/:id/transactions': 'recordWhatWasSpent',
  'POST /identities/:id/events': 'reportOnSomebody',
  'POST /queue/:id/retry': 'tryDeliveryOfQueueNow',
  'POST /webhooks/:id/secret/rotate': 'giveWebhookNewSecret',
  'PATCH /identities/:id/emails/:email_id': 'markEmail',
  'GET /identities/:id/emails/:email_id/html': 'lookAtEmail',
  'POST /webhooks/:id/deliveries/:delivery_id/redeliver': 'deliverEventOnceMore',
}
