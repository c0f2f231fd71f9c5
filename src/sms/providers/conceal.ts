/** What the far side said, without the secrets that it may repeat: callers and the log are told its words. */
export function conceal(text: string, secrets: readonly string[]): string {
  return secrets.reduce((rest, secret) => rest.replaceAll(secret, '…'), text)
}
