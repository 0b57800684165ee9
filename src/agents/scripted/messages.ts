import { isObject } from '../../core/content.ts';
import type { FromProgram } from './protocol.ts';

const isText = (value: unknown) => typeof value === 'string';
const isTextOrNull = (value: unknown) => value === null || isText(value);

/** What each message must have to be one; the rest is passed on as it came. */
const REQUIRED: { readonly [T in FromProgram['type']]: { readonly [field: string]: (value: unknown) => boolean } } = {
  opened: { id: isTextOrNull },
  refused: { reason: isText, message: isText },
  accepted: { prompt: isText, parent: isTextOrNull },
  session: { id: isText },
  update: { update: (value) => isObject(value) && isText(value.sessionUpdate) },
  permission: { id: isText, title: isText, options: Array.isArray },
  usage: { usage: isObject },
  ended: { prompt: isText, outcome: (value) => isObject(value) && isText(value.kind) },
};

/** Null: noise. A program's output is never trusted to be what it should. */
export function parseMessage(line: string): FromProgram | null {
  let message: unknown;
  try {
    message = JSON.parse(line);
  } catch {
    return null;
  }
  if (!isObject(message) || !isText(message.type)) return null;
  const type = message.type as FromProgram['type'];
  if (!Object.hasOwn(REQUIRED, type)) return null;
  const whole = Object.entries(REQUIRED[type]).every(([field, check]) => check(message[field]));
  return whole ? (message as unknown as FromProgram) : null;
}
