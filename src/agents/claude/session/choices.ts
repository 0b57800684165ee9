import type { Choices } from '../../../core/turn/choices.ts';
import { isObject } from '../../../core/turn/content.ts';
import type { Update } from '../../../core/turn/update.ts';
import type { Chosen } from '../../../ports/agent.ts';
import type { ClaudeMessage, Setting } from '../connection.ts';
import { EFFORTS, MODES } from '../settings.ts';

/** What Claude was started with. Null: Claude chooses. */
export interface StartedWith {
  readonly model: string | null;
  /** The model of the settings, for a turn that chooses none. */
  readonly usualModel: string | null;
  readonly mode: string | null;
  readonly effort: string | null;
}

/**
 * The model, the permission mode and the effort of a running Claude. Mode and effort can be changed while it runs, and are lost with its
 * process. The model is not changed: Claude would add the change to the conversation, as if the person had said it. So another model needs
 * another process.
 */
export class ClaudeChoices {
  readonly #set: (what: Setting) => Promise<string | null>;
  readonly #started: StartedWith;
  /** The mode without any choice; null: not known. */
  #usualMode: string | null;
  #mode: string | null;
  #effort: string | null;
  #announced = '';

  constructor(set: (what: Setting) => Promise<string | null>, started: StartedWith) {
    this.#set = set;
    this.#started = started;
    this.#usualMode = started.mode;
    this.#mode = started.mode;
    this.#effort = started.effort;
  }

  /** Claude reports its mode. */
  read({ subtype, permissionMode }: ClaudeMessage): void {
    if (subtype !== 'init' || typeof permissionMode !== 'string' || this.#mode !== this.#usualMode) return;
    this.#usualMode = permissionMode;
    this.#mode = permissionMode;
  }

  /**
   * What can be chosen and what is set without a choice, as ACP agents announce it. Claude names its model in the message with which
   * it begins a turn. Empty: it is another message, or all of it was announced before.
   */
  announcement({ subtype, model: running }: ClaudeMessage, models: readonly unknown[]): Update[] {
    if (subtype !== 'init') return [];
    const { model, usualModel, effort } = this.#started;
    const usual = model === usualModel && typeof running === 'string' ? running : usualModel;
    const said: Update[] = [
      {
        sessionUpdate: 'current_mode_update',
        currentModeId: this.#usualMode,
        availableModes: MODES.map((id) => ({ id, name: id })),
      },
      {
        sessionUpdate: 'config_option_update',
        configOptions: [
          { ...select('model', 'Model', 'model', usual), options: models.filter(isObject).flatMap(modelNamed) },
          {
            ...select('effort', 'Effort', 'thought_level', effort),
            options: EFFORTS.map((value) => ({ value, name: value })),
          },
        ],
      },
    ];
    const isNew = JSON.stringify(said) !== this.#announced;
    this.#announced = JSON.stringify(said);
    return isNew ? said : [];
  }

  /** See `AgentSession.choose`. */
  async choose({ model, mode = this.#usualMode ?? undefined, config = {} }: Choices): Promise<Chosen> {
    const { effort = this.#started.effort } = config;
    const wrong = lacks({ ...(mode !== undefined && { mode }), config });
    if (wrong !== null) return { why: wrong };
    if ((model ?? this.#started.usualModel) !== this.#started.model) return 'reopen';
    // The mode that Claude had before is not known. Its next process has it.
    if (mode === undefined && this.#mode !== null) return 'reopen';
    if (mode !== undefined && mode !== this.#mode) {
      const why = await this.#set({ mode });
      if (why !== null) return { why: `Claude refused the mode "${mode}": ${why}` };
      this.#mode = mode;
    }
    if (effort !== this.#effort) {
      const level = effort === null ? null : String(effort);
      const why = await this.#set({ effort: level });
      if (why !== null) return { why: `Claude refused the effort "${effort}": ${why}` };
      this.#effort = level;
    }
    return 'set';
  }
}

function select(id: string, name: string, category: string, currentValue: string | null) {
  return { id, name, type: 'select', category, currentValue };
}

function modelNamed({ value, displayName, description }: Record<string, unknown>) {
  return typeof value === 'string' ? [{ value, name: displayName ?? value, description }] : [];
}

/** What Claude does not have, with what it has; null: it has all of it, or only Claude knows (a model). */
export function lacks({ mode, config = {} }: Choices): string | null {
  const { effort, ...others } = config;
  const [other] = Object.keys(others);
  if (mode !== undefined && !MODES.some((one) => one === mode)) {
    return `Claude has no mode ${JSON.stringify(mode)}; it has: ${MODES.join(', ')}`;
  }
  if (other !== undefined) return `Claude has no config option "${other}"; its config options: effort`;
  if (effort === undefined || EFFORTS.some((one) => one === effort)) return null;
  return `Claude has no effort ${JSON.stringify(effort)}; it has: ${EFFORTS.join(', ')}`;
}
