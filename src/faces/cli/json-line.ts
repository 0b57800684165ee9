/** DEL, C1, and characters that reorder or break lines of text: JSON leaves them as they are, terminals do not. */
const UNSAFE = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

/** A value as one line of JSON in which no character can steer a terminal. */
export function jsonLine(value: unknown): string {
  // Outside of its strings JSON has none of these characters, so that escaping them keeps the value as it is.
  return JSON.stringify(value).replaceAll(UNSAFE, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
