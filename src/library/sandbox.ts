import { checkOptions } from '../core/input/arguments.ts';
import type { PublicSandbox, SandboxView } from '../core/public/sandbox.ts';
import type { ExecResult } from '../core/sandbox/sandbox.ts';
import type { EngineSandboxes } from '../ports/engine/sandboxes.ts';

/**
 * A sandbox of an owner, by its name or id.
 *
 * @example
 * const { sandbox, uses } = await tl.as(user).sandbox('website').show();
 * console.log(sandbox.state, uses.map(({ conversationId, sessionId }) => `${conversationId}: ${sessionId}`));
 */
export class SandboxHandle {
  readonly #sandboxes: EngineSandboxes;
  readonly #name: string;

  constructor(sandboxes: EngineSandboxes, name: string) {
    this.#sandboxes = sandboxes;
    this.#name = name;
  }

  /** The sandbox with its set-up and the conversations that work in it. `measure`: its size is measured now. */
  async show(options: { measure?: boolean | undefined } = {}): Promise<SandboxView> {
    checkOptions(options, { measure: true }, 'show()');
    return this.#sandboxes.show(this.#name, options);
  }

  /** Makes it if it is missing, and sets it up, before any conversation works in it. Only by a name. */
  open(): Promise<PublicSandbox> {
    return this.#sandboxes.open(this.#name);
  }

  /** Runs a command in it, as agents run there. */
  exec(command: readonly string[]): Promise<ExecResult> {
    return this.#sandboxes.exec(this.#name, command);
  }

  /** Ends the sessions that wait in it, and stops what keeps it running. The next turn reopens it. */
  rest(): Promise<PublicSandbox> {
    return this.#sandboxes.rest(this.#name);
  }

  /** Deletes it with everything in it. Refused when unsaved work is in it, unless `force`. */
  async remove(options: { force?: boolean | undefined } = {}): Promise<{ readonly sandboxId: string }> {
    checkOptions(options, { force: true }, 'remove()');
    return this.#sandboxes.remove(this.#name, options);
  }
}
