import type { Child } from '../../../ports/sandbox.ts';
import { Inbox } from '../../shared/inbox.ts';
import { parseObject } from '../../shared/json.ts';
import { type Ending, LineProcess } from '../../shared/line-process.ts';
import {
  type ClaudeConnection,
  type ClaudeMessage,
  type ClaudeUserMessage,
  type ConnectRequest,
  type ControlAnswer,
  modelsIn,
  type Setting,
} from '../connection.ts';
import { errorOf } from '../session/result.ts';
import { Control } from './control.ts';

const CLOSE_STEP_MS = 2_000;

/** One process of Claude. JSON lines go in and come out: prompts, messages, and control requests in between. */
export class CliConnection implements ClaudeConnection {
  readonly messages = new Inbox<ClaudeMessage>();
  models: readonly unknown[] = [];
  readonly #process: LineProcess;
  readonly #control: Control;
  readonly #ended = Promise.withResolvers<Ending>();
  /** The error of the last result: before the first prompt, why Claude did not start. */
  #error = '';
  ending: string | null = null;

  constructor(child: Child, onPermission: ConnectRequest['onPermission']) {
    this.#control = new Control((message) => this.#process.send(message), onPermission);
    let tooLong = false;
    const listener = {
      line: (line: string) => {
        if (!tooLong) this.#receive(line);
      },
      // The line may have been a result or a question, for which we would wait for ever.
      tooLong: () => {
        tooLong = true;
        child.kill('SIGKILL');
      },
      gone: (ending: Ending) => {
        this.#end(tooLong ? { ...ending, text: 'because it printed a line that is too long' } : ending);
      },
    };
    this.#process = new LineProcess(child, listener, { closeStepMs: CLOSE_STEP_MS });
  }

  get process() {
    return this.#process.identity;
  }

  get alive(): boolean {
    return this.#process.alive && this.ending === null;
  }

  /**
   * Without an error in its answer, Claude is ready for prompts. `options` are sent as a message, because everybody on the machine can
   * read arguments.
   */
  async start(options: { appendSystemPrompt?: string; agents?: object }): Promise<ControlAnswer> {
    const answer = await this.#control.ask({ subtype: 'initialize', ...options });
    if (answer?.ok) this.models = modelsIn(answer.response);
    return answer;
  }

  setServers(servers: Readonly<Record<string, object>>): Promise<ControlAnswer> {
    return this.#control.ask({ subtype: 'mcp_set_servers', servers });
  }

  /** Resolves with how it ended, stderr and last error included. */
  async whyEnded(): Promise<string> {
    const { text } = await this.#ended.promise;
    return this.#error === '' ? text : `${text}\n${this.#error}`;
  }

  send(message: ClaudeUserMessage): void {
    // As the SDK does for `verbatimPrompts`: "/clear" and "@file" are text of the prompt, not commands.
    this.#process.send({ ...message, client_composed: true });
  }

  async set(what: Setting): Promise<string | null> {
    const answer = this.alive ? await this.#control.ask(requestOf(what)) : null;
    if (answer === null) return 'Claude’s process has ended';
    return answer.ok ? null : answer.error;
  }

  async interrupt(): Promise<void> {
    if (this.alive) await this.#control.ask({ subtype: 'interrupt' });
  }

  close(): Promise<void> {
    return this.#process.close();
  }

  kill(): Promise<void> {
    return this.#process.kill();
  }

  #receive(line: string): void {
    const message = parseMessage(line);
    if (message === null || this.#control.read(message)) return;
    if (message.type === 'result') this.#error = errorOf(message);
    this.messages.push(message);
  }

  #end(ending: Ending): void {
    this.ending = ending.text;
    this.#control.end();
    this.messages.close();
    this.#ended.resolve(ending);
  }
}

function requestOf(what: Setting) {
  if ('mode' in what) return { subtype: 'set_permission_mode', mode: what.mode };
  return { subtype: 'apply_flag_settings', settings: { effortLevel: what.effort } };
}

/** Null: not a message. Anything may be printed on stdout. */
function parseMessage(line: string): ClaudeMessage | null {
  const message = parseObject(line);
  return typeof message?.type === 'string' ? (message as unknown as ClaudeMessage) : null;
}
