import { RequestError } from '@agentclientprotocol/sdk';
import type { Choices } from '../../../core/turn/choices.ts';
import { isObject } from '../../../core/turn/content.ts';
import type { Update } from '../../../core/turn/update.ts';
import { asObject } from '../../shared/json.ts';
import { Unsuitable, wordsOf } from '../connection/answers.ts';

type Value = string | boolean;
type Fields = Readonly<Record<string, unknown>>;

/** Something that can be chosen in a session: its mode, or a config option. `values` null: any, or true and false. */
interface Setting {
  readonly current: Value | null;
  readonly values: readonly string[] | null;
  readonly category: string | null;
}

const MODE = 'mode';
/** Keys of settings: the mode of the protocol, and config options by their id. */
const configKey = (id: string) => `config:${id}`;

/**
 * The mode and the config options of an open session: what there is, what is set, and what is owed. When a choice replaces a value, the
 * old value is owed until it is set again. Setting one value may change others (each model has its own efforts): those are owed as well.
 */
export class SessionChoices {
  readonly #request: (method: string, params: Fields) => Promise<unknown>;
  readonly #settings = new Map<string, Setting>();
  /** Modes and config options in the agent's own words. */
  #availableModes: readonly unknown[] = [];
  #configOptions: readonly Fields[] = [];
  readonly #owed: Map<string, Value>;
  /** Keys whose value is owed because another one was set: the key of that one. Both can only be given back together. */
  readonly #because = new Map<string, string>();

  /** `owed`: what the session still had to be given back when it was last open. */
  constructor(request: (method: string, params: Fields) => Promise<unknown>, owed: Readonly<Record<string, Value>>) {
    this.#request = request;
    this.#owed = new Map(Object.entries(owed));
  }

  /** What has to be given back, for the session's memo. */
  get owed(): Readonly<Record<string, Value>> {
    return Object.fromEntries(this.#owed);
  }

  /** What there is and what is set, as the updates with which an agent reports a change. Empty: there is nothing to choose. */
  get announcement(): Update[] {
    const said: Update[] = [];
    const mode = this.#settings.get(MODE);
    if (this.#availableModes.length > 0) {
      const { current: currentModeId = null } = mode ?? {};
      said.push({ sessionUpdate: 'current_mode_update', currentModeId, availableModes: this.#availableModes });
    }
    if (this.#configOptions.length > 0) {
      // An agent may answer a change without the new value of the option.
      const configOptions = this.#configOptions.map((option) => {
        const current = this.#settings.get(configKey(String(option.id)))?.current ?? null;
        return current === null ? option : { ...option, currentValue: current };
      });
      said.push({ sessionUpdate: 'config_option_update', configOptions });
    }
    return said;
  }

  /** Reads what the agent reports: in its answer to opening or to a change, or in an update. */
  read({ modes, configOptions, currentModeId }: Fields): void {
    const { availableModes, currentModeId: current = currentModeId } = asObject(modes);
    const known = this.#settings.get(MODE);
    if (Array.isArray(availableModes) || (known !== undefined && typeof current === 'string')) {
      const ids = Array.isArray(availableModes) ? idsOf(availableModes, 'id') : (known?.values ?? null);
      this.#settings.set(MODE, { current: typeof current === 'string' ? current : null, values: ids, category: MODE });
    }
    if (Array.isArray(availableModes)) this.#availableModes = availableModes;
    if (!Array.isArray(configOptions)) return;
    this.#configOptions = configOptions.filter(isObject);
    for (const key of this.#settings.keys()) if (key !== MODE) this.#settings.delete(key);
    for (const option of this.#configOptions) {
      if (typeof option.id === 'string') this.#settings.set(configKey(option.id), settingOf(option));
    }
  }

  /** Sets what the settings of the agent name. What that replaces is not owed. Throws `Unsuitable`, or what the agent answers. */
  async setDefaults(choices: Choices): Promise<void> {
    const { config = {}, ...others } = choices;
    const wanted = this.#wanted(others);
    // Some agents take options that they do not list.
    for (const [id, value] of Object.entries(config)) wanted.set(configKey(id), value);
    for (const [key, value] of wanted) await this.#set(key, value);
    for (const key of wanted.keys()) this.#owed.delete(key);
  }

  /** Sets these choices, and gives back everything else that is owed. Returns null, or why not, with what there is. */
  async choose(choices: Choices): Promise<string | null> {
    try {
      const wanted = this.#wanted(choices);
      for (const [key, value] of wanted) await this.#setForNow(key, value);
      await this.giveBack(wanted);
      return null;
    } catch (error) {
      return wordsOf(error);
    }
  }

  /** See `AgentSession.lacks`. The modes are those of the model and the options that are set now. */
  lacks(choices: Choices): string | null {
    const { mode, model, config } = choices;
    try {
      this.#wanted(choices);
    } catch (error) {
      return wordsOf(error);
    }
    const { values } = this.#settings.get(MODE) ?? { values: null };
    const mayDiffer = model !== undefined || config !== undefined || this.#owed.size > 0;
    if (mode === undefined || values === null || mayDiffer || values.includes(mode)) return null;
    return this.#lacksValue('mode', mode, values);
  }

  /** Gives back everything that is owed, except what is `wanted`. Throws `Unsuitable`, or what the agent answers. */
  async giveBack(wanted: ReadonlyMap<string, unknown> = new Map()): Promise<void> {
    // The model first: other values depend on it.
    for (const [key, value] of [...this.#owed].sort(([a], [b]) => this.#rank(a) - this.#rank(b))) {
      if (wanted.has(key) || wanted.has(this.#because.get(key) ?? key)) continue;
      const setting = this.#settings.get(key);
      if (setting !== undefined && setting.current !== value) await this.#set(key, value);
      this.#owed.delete(key);
      this.#because.delete(key);
    }
  }

  #wanted({ model, mode, config = {} }: Choices): Map<string, Value> {
    const wanted = new Map<string, Value>();
    if (model !== undefined) wanted.set(this.#find('model', 'model'), model);
    for (const [id, value] of Object.entries(config)) wanted.set(this.#find(`config option "${id}"`, id), value);
    if (mode !== undefined) wanted.set(this.#find('mode', MODE), mode);
    return wanted;
  }

  /** The key of the setting with this name. Throws `Unsuitable` with what there is. */
  #find(what: string, name: string): string {
    const keys = [...this.#settings.keys()];
    const byCategory = keys.find((key) => key !== MODE && this.#settings.get(key)?.category === name);
    const key =
      name === MODE && this.#settings.has(MODE)
        ? MODE
        : [configKey(name), byCategory].find((one) => one !== undefined && this.#settings.has(one));
    if (key === undefined) throw new Unsuitable(this.#lacks(what));
    return key;
  }

  #lacks(what: string): string {
    const ids = [...this.#settings.keys()].filter((one) => one !== MODE).map((one) => one.slice(configKey('').length));
    return `this agent has no ${what}${ids.length === 0 ? '' : `; its config options: ${ids.join(', ')}`}`;
  }

  #rank(key: string): number {
    return this.#settings.get(key)?.category === 'model' ? 0 : 1;
  }

  /** Sets a value for some turns. All values that this replaces are owed. */
  async #setForNow(key: string, value: Value): Promise<void> {
    if (this.#settings.get(key)?.current === value) return;
    const before = [...this.#settings].map(([one, { current }]) => [one, current] as const);
    await this.#set(key, value);
    for (const [one, was] of before) {
      const changed = this.#settings.has(one) && this.#settings.get(one)?.current !== was;
      if (!changed || was === null || this.#owed.has(one)) continue;
      this.#owed.set(one, was);
      if (one !== key) this.#because.set(one, key);
    }
  }

  /** The agent decides whether it has the value: some also take names that they do not list. Throws `Unsuitable` with its list. */
  async #set(key: string, value: Value): Promise<void> {
    const configId = key.slice(configKey('').length);
    try {
      if (key === MODE) {
        await this.#request('session/set_mode', { modeId: value });
        this.read({ currentModeId: value });
        return;
      }
      const typed = typeof value === 'boolean' ? { type: 'boolean', value } : { value };
      const answer = asObject(await this.#request('session/set_config_option', { configId, ...typed }));
      this.read(answer);
      // Some agents answer with nothing.
      const setting = Array.isArray(answer.configOptions) ? undefined : this.#settings.get(key);
      if (setting !== undefined) this.#settings.set(key, { ...setting, current: value });
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      const setting = this.#settings.get(key);
      if (setting === undefined)
        throw new Unsuitable(`${this.#lacks(`config option "${configId}"`)} (${wordsOf(error)})`);
      const { values, category } = setting;
      const what = key === MODE || category === 'model' ? (category ?? MODE) : `value of "${configId}"`;
      throw new Unsuitable(`${this.#lacksValue(what, value, values)} (${wordsOf(error)})`);
    }
  }

  #lacksValue(what: string, value: Value, values: readonly string[] | null): string {
    const has = values === null ? 'true, false' : values.join(', ');
    return `this agent has no ${what} ${JSON.stringify(value)}; it has: ${has}`;
  }
}

function settingOf({ type, currentValue, options, category }: Fields): Setting {
  const current = typeof currentValue === 'string' || typeof currentValue === 'boolean' ? currentValue : null;
  const flat = Array.isArray(options)
    ? options.filter(isObject).flatMap((one) => (Array.isArray(one.options) ? one.options : [one]))
    : [];
  return {
    current,
    values: type === 'boolean' ? null : idsOf(flat, 'value'),
    category: typeof category === 'string' ? category : null,
  };
}

function idsOf(list: readonly unknown[], field: string): string[] {
  return list.flatMap((one) => {
    const id = asObject(one)[field];
    return typeof id === 'string' ? [id] : [];
  });
}
