export function toBase64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
}

/** Of either alphabet, with padding or without. Empty when it is neither. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (letter) => letter.charCodeAt(0))
  } catch {
    return new Uint8Array(0)
  }
}

export function utf8(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text)
}

/** The JSON in these bytes. */
export function parsed(bytes: Uint8Array | ArrayBuffer): unknown {
  return JSON.parse(new TextDecoder().decode(bytes))
}
