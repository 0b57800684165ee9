import type { Child } from '../../ports/sandbox.ts';
import { LineProcess } from '../shared/line-process.ts';
import { parseMessage } from './messages.ts';
import type { FromProgram } from './protocol.ts';

export interface Listener {
  message(message: FromProgram): void;
  /** Resolves when more may come. */
  room(): Promise<void> | undefined;
  /** Called once, after the last message: the process is gone. `how` says how, with what it complained about. */
  gone(how: string): void;
}

const CLOSE_STEP_MS = 500;
/** Longer than any message of the program; one of its misbehaviours is a line without an end. */
const MAX_LINE_BYTES = 8 * 1024 * 1024;

/** The program's process: messages go in and come out. */
export class ProgramProcess extends LineProcess {
  /** Lines of its output that were no messages. */
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
        room: () => listener.room(),
        gone: ({ text }) => listener.gone(text),
      },
      { closeStepMs: CLOSE_STEP_MS, maxLineBytes: MAX_LINE_BYTES },
    );
  }
}
