import { isObject } from '../../core/turn/content.ts';
import type { Child } from '../../ports/sandbox.ts';
import { LineProcess } from '../shared/line-process.ts';
import type { FromProgram } from './protocol.ts';

export interface Listener {
  message(message: FromProgram): void;
  /** Resolves when more messages may come. */
  ready(): Promise<void> | undefined;
  /** Called once, after the last message, when the process has ended. `how`: exit code or signal, and the end of stderr. */
  gone(how: string): void;
}

const CLOSE_STEP_MS = 500;
/** Longer than any message of the program. One of its faults is a line without an end. */
const MAX_LINE_BYTES = 8 * 1024 * 1024;

/** The process of the program: messages go in and come out. */
export class ProgramProcess extends LineProcess {
  /** How many lines of its output were not messages. */
  noise = 0;

  constructor(child: Child, listener: Listener) {
    super(
      child,
      {
        line: (line) => {
          const message = parseMessage(line);
          if (message === null) this.noise += 1;
          else listener.message(message);
        },
        tooLong: () => {
          this.noise += 1;
        },
        ready: () => listener.ready(),
        gone: ({ text }) => listener.gone(text),
      },
      { closeStepMs: CLOSE_STEP_MS, maxLineBytes: MAX_LINE_BYTES },
    );
  }
}

const isText = (value: unknown) => typeof value === 'string';
const isTextOrNull = (value: unknown) => value === null || isText(value);

/** The fields that each message must have. Other fields are passed on unchecked. */
const REQUIRED: { readonly [T in FromProgram['type']]: { readonly [field: string]: (value: unknown) => boolean } } = {
  opened: { id: isTextOrNull },
  refused: { reason: isText, message: isText },
  taken: { prompt: isText, parent: isTextOrNull },
  session: { id: isText },
  update: { update: (value) => isObject(value) && isText(value.sessionUpdate) },
  permission: { id: isText, title: isText, options: Array.isArray },
  usage: { usage: isObject },
  ended: { prompt: isText, outcome: (value) => isObject(value) && isText(value.kind) },
};

/** Null: not a message. Anything may be printed on stdout. */
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
