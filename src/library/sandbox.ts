import type { SandboxView } from '../core/public/sandbox.ts';
import type { EngineSandboxes } from '../ports/engine/sandboxes.ts';

/**
 * A sandbox of an owner, by its name or id.
 *
 * @example
 * const { sandbox, uses } = await tl.as(user).sandbox('website').show();
 * console.log(sandbox.state, uses.map(({ conversation, session }) => `${conversation}: ${session}`));
 */
export class SandboxHandle {
  readonly #sandboxes: EngineSandboxes;
  readonly #name: string;

  constructor(sandboxes: EngineSandboxes, name: string) {
    this.#sandboxes = sandboxes;
    this.#name = name;
  }

  /** With what was set up in it, and the conversations that work in it. */
  show(): Promise<SandboxView> {
    return this.#sandboxes.show(this.#name);
  }
}
