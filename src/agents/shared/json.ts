import { isObject } from '../../core/turn/content.ts';

/* Agents send JSON of any shape. */

/** The object itself; an empty one for anything else. */
export function asObject(value: unknown): Record<string, unknown> {
  return isObject(value) ? value : {};
}

/** Null: the text is not JSON, or not an object. */
export function parseObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}
