import { isObject } from '../../../core/content.ts';
import type { Child } from '../../../ports/sandbox.ts';
import { type Ending, LineProcess } from '../../shared/line-process.ts';
import type { ClaudeMessage } from '../connection.ts';

export type { Ending };

export interface Listener {
  message(message: ClaudeMessage): void;
  /** Called once, after the last message: the process is gone. */
  gone(how: Ending): void;
}

const CLOSE_STEP_MS = 2_000;

/** One process of Claude: lines of JSON go in and come out. */
export class ClaudeProcess extends LineProcess {
  constructor(child: Child, listener: Listener) {
    let tooLong = false;
    super(
      child,
      {
        line: (line) => {
          if (tooLong) return;
          const message = parseMessage(line);
          if (message !== null) listener.message(message);
        },
        // What such a line was, a result or a question, nobody knows any more: going on would be waiting for it.
        tooLong: () => {
          tooLong = true;
          child.kill('SIGKILL');
        },
        gone: (ending) => {
          const text = 'because it printed a line that is too long';
          listener.gone(tooLong ? { ...ending, text } : ending);
        },
      },
      { closeStepMs: CLOSE_STEP_MS },
    );
  }
}

/** Null: noise. A program's output is never trusted to be what it should. */
export function parseMessage(line: string): ClaudeMessage | null {
  try {
    const message: unknown = JSON.parse(line);
    return isObject(message) && typeof message.type === 'string' ? (message as ClaudeMessage) : null;
  } catch {
    return null;
  }
}
