import { writeFile } from 'node:fs/promises';
import { hasCode, ThroughlineError } from '../../../core/errors.ts';
import type { PublicConversation } from '../../../core/public/conversation.ts';
import type { Engine } from '../../../ports/engine.ts';
import { orNull } from '../input.ts';
import { turns, usageLine } from '../lines.ts';
import { nearest } from '../names.ts';
import { oneLine } from '../terminal-text.ts';
import { type Described, type Line, span } from './text/cells.ts';

/** What the commands of a chat can do to it. */
export interface SlashContext {
  readonly engine: Engine;
  /** Null: its first prompt creates it. */
  readonly conversation: PublicConversation | null;
  readonly agent: string | null;
  /** The last turn that has ended; null: none. */
  readonly lastTurn: string | null;
  say(...lines: readonly Line[]): void;
  /** Says what each name is. */
  describe(rows: readonly Described[]): void;
  useAgent(name: string): void;
  /** Cancels what is open; false: nothing is. */
  cancel(): boolean;
  retry(turn: string): Promise<void>;
  answer(word: 'allow' | 'deny'): void;
  enter(conversation: PublicConversation): Promise<void>;
  /** A new one; its key is chosen when none is given. */
  begin(key: string | undefined): Promise<void>;
  open(key: string): Promise<void>;
  leave(): void;
}

interface SlashCommand {
  readonly takes: string;
  readonly does: string;
  /** All that follows is one name, with spaces in it. */
  readonly isName?: true;
  run(context: SlashContext, words: readonly string[]): Promise<void> | void;
}

export const SLASH_COMMANDS: Readonly<Record<string, SlashCommand>> = {
  help: { takes: '', does: 'list the commands and keys', run: ({ describe }) => describe(helpRows()) },
  agent: { takes: '[NAME]', does: 'let another agent answer the next prompt, or list the agents', run: agent },
  fork: { takes: '[TURN] [KEY]', does: 'copy the conversation up to a turn, and continue in the copy', run: fork },
  retry: { takes: '', does: 'send the prompt of the last turn again', run: retry },
  cancel: { takes: '', does: 'stop the turn that runs, and those that are queued', run: cancel },
  kill: { takes: '', does: 'end the live session; the next prompt restores it', run: kill },
  sessions: { takes: '', does: 'list the sessions of the conversation', run: sessions },
  usage: { takes: '', does: 'show what the conversation has used', run: usage },
  export: {
    takes: '[FILE]',
    does: 'write the conversation to a file: JSON, or a document if it ends in .md',
    isName: true,
    run: exportTo,
  },
  allow: { takes: '', does: 'answer the agent’s question: yes, once', run: ({ answer }) => answer('allow') },
  deny: { takes: '', does: 'answer the agent’s question: no', run: ({ answer }) => answer('deny') },
  list: { takes: '', does: 'list conversations', run: list },
  open: { takes: 'KEY', does: 'go to another conversation', isName: true, run: open },
  new: { takes: '[KEY]', does: 'begin another conversation', isName: true, run: begin },
  quit: { takes: '', does: 'leave', run: ({ leave }) => leave() },
};

type Slash =
  | { readonly kind: 'prompt'; readonly text: string }
  | {
      readonly kind: 'command';
      readonly name: string;
      readonly command: SlashCommand;
      readonly words: readonly string[];
    }
  | { readonly kind: 'unknown'; readonly message: string };

/** The input of a person: a prompt, or a command. Two slashes begin a prompt with one slash. */
export function parseSlash(text: string): Slash {
  if (!text.startsWith('/') || text.includes('\n')) return { kind: 'prompt', text };
  if (text.startsWith('//')) return { kind: 'prompt', text: text.slice(1) };
  const [name = '', ...words] = text.slice(1).trim().split(/\s+/);
  const command = Object.hasOwn(SLASH_COMMANDS, name) ? SLASH_COMMANDS[name] : undefined;
  if (command !== undefined) {
    const most = command.isName ? Number.POSITIVE_INFINITY : command.takes.split(' ').filter(Boolean).length;
    if (words.length <= most) return { kind: 'command', name, command, words };
    // Arguments are used or refused, never ignored: "/retry 3" must not retry the last turn.
    const takes = command.takes === '' ? 'nothing after it' : command.takes;
    return { kind: 'unknown', message: `/${name} takes ${takes}.` };
  }
  const near = nearest(name, Object.keys(SLASH_COMMANDS));
  const meant = near === null ? '' : ` Did you mean /${near}?`;
  const message = `There is no command /${name}.${meant} /help lists them. To send this as a prompt, write /${text}`;
  return { kind: 'unknown', message };
}

/** The names of the commands that begin like this. */
export function completions(text: string): string[] {
  const [, start] = /^\/([a-z]*)$/.exec(text) ?? [];
  return start === undefined ? [] : Object.keys(SLASH_COMMANDS).filter((name) => name.startsWith(start));
}

const KEYS: readonly Described[] = [
  ['Enter', 'send'],
  ['Alt-Enter, \\ Enter', 'a new line (also Shift-Enter, where the terminal reports it)'],
  ['↑ ↓', 'earlier prompts'],
  ['Ctrl-C', 'cancel the turn; twice: leave'],
  ['Ctrl-D', 'leave, on an empty line'],
];

function helpRows(): Described[] {
  const commands = Object.entries(SLASH_COMMANDS).map(
    ([name, { takes, does }]) => [`/${name} ${takes}`.trimEnd(), does] as const,
  );
  return [...commands, ['//TEXT', 'send /TEXT to the agent, as a prompt'], ...KEYS];
}

function existing({ conversation }: SlashContext): PublicConversation {
  if (conversation !== null) return conversation;
  throw new ThroughlineError('not_found', 'There is no conversation yet. The first prompt creates it.');
}

async function agent({ engine, say, useAgent }: SlashContext, [name]: readonly string[]): Promise<void> {
  const agents = await engine.agents();
  if (name === undefined) {
    const lines = agents.map(({ name: each, isDefault, traits, problem }): Line => {
      const state = traits === null ? oneLine(problem ?? 'not available') : isDefault ? 'default' : '';
      return [span(oneLine(each).padEnd(16), 'bold'), span(state, 'dim')];
    });
    return say(...lines, [span('"/agent NAME" lets that agent answer from the next prompt on.', 'dim')]);
  }
  const found = agents.find((each) => each.name === name);
  if (found === undefined) {
    const names = agents.map((each) => each.name);
    throw new ThroughlineError('not_found', `There is no agent "${name}".`, {
      hint: withMeant(name, names, `Available: ${names.join(', ')}.`),
    });
  }
  useAgent(name);
  const trouble = found.traits === null ? ` ${oneLine(found.problem ?? 'It is not available.')}` : '';
  say([span(`${name} answers from the next prompt on, and gets the history that it lacks.${trouble}`, 'dim')]);
}

async function fork(context: SlashContext, words: readonly string[]): Promise<void> {
  const { id, key } = existing(context);
  const [first = '', second] = words;
  const isTurn = /^\d+$/.test(first);
  const named = isTurn ? second : first || undefined;
  const made = await context.engine.fork(id, {
    ...(isTurn && { turn: Number(first) }),
    key: named ?? (await freeKey(context.engine, `${key ?? 'chat'}-fork`)),
  });
  await context.enter(made);
}

const MOST_TRIES = 50;

/** The name itself, else with a number after it. */
export async function freeKey(engine: Engine, name: string): Promise<string> {
  for (let n = 1; n <= MOST_TRIES; n += 1) {
    const key = n === 1 ? name : `${name}-${n}`;
    if ((await orNull(engine.conversation(key))) === null) return key;
  }
  throw new ThroughlineError('conflict', `The names from ${name} to ${name}-${MOST_TRIES} are taken.`, {
    hint: 'Name a key.',
  });
}

async function retry({ lastTurn, retry: again }: SlashContext): Promise<void> {
  if (lastTurn === null) throw new ThroughlineError('not_found', 'No turn has ended yet.');
  await again(lastTurn);
}

function cancel({ cancel: stop, say }: SlashContext): void {
  if (!stop()) say([span('No turn is open.', 'dim')]);
}

async function kill(context: SlashContext): Promise<void> {
  const killed = await context.engine.kill(existing(context).id);
  const gone = 'Session gone. Nothing lost. The next prompt restores it.';
  context.say([span(killed.length === 0 ? 'No session is live.' : gone, 'dim')]);
}

async function sessions(context: SlashContext): Promise<void> {
  const all = (await context.engine.sessions(existing(context).id)).toReversed();
  const lines = all.map(({ id, agent: name, origin, state, watermark }): Line => {
    return [
      span(oneLine(id), 'bold'),
      span(`  ${oneLine(name)}, ${origin}, ${state}, has the turns up to ${watermark}`),
    ];
  });
  context.say(...(lines.length === 0 ? [[span('This conversation has no session yet.', 'dim')]] : lines));
}

async function usage(context: SlashContext): Promise<void> {
  const summary = await context.engine.summary(existing(context).id);
  const [newest] = await context.engine.usage({ limit: 1 });
  context.say([span(`This conversation, ${turns(summary.contexts)}: `), span(usageLine(summary.usage), 'bold')]);
  if (newest !== undefined) {
    context.say([
      span(`All conversations, ${newest.day}, ${oneLine(newest.agent)}: ${usageLine(newest.usage)}`, 'dim'),
    ]);
  }
}

async function exportTo(context: SlashContext, words: readonly string[]): Promise<void> {
  const { id, key } = existing(context);
  const file = words.join(' ') || `${(key ?? id).replaceAll(/[^\p{L}\p{N}._-]+/gu, '-').replace(/^\.+/, '')}.json`;
  const { asJson, asMarkdown, cannotWrite } = await import('../commands/conversations/export.ts');
  const { text, count } = await (file.endsWith('.md') ? asMarkdown : asJson)(context.engine, id);
  try {
    await writeFile(file, `${text}\n`, { flag: 'wx', mode: 0o600 });
  } catch (cause) {
    throw cannotWrite(file, cause);
  }
  context.say([span(`Wrote ${turns(count)} to ${file}.`, 'dim')]);
}

async function list({ engine, say, conversation }: SlashContext): Promise<void> {
  const found = await engine.list({ limit: 15, putAway: false });
  const lines = found.map(({ id, key, title, historyCount, open: running }): Line => {
    const here = id === conversation?.id ? '› ' : '  ';
    const state = running > 0 ? ', running' : '';
    return [
      span(here, 'cyan'),
      span(oneLine(key ?? id), 'bold'),
      span(`  ${turns(historyCount)}${state}  `),
      span(oneLine(title), 'dim'),
    ];
  });
  say(...(lines.length === 0 ? [[span('There is no conversation yet.', 'dim')]] : lines));
}

async function begin({ begin: start }: SlashContext, words: readonly string[]): Promise<void> {
  await start(words.join(' ') || undefined);
}

/** How many conversations, most recent first, are searched for a similar key. */
const MOST_LOOKED_THROUGH = 500;

async function open({ engine, open: goTo }: SlashContext, words: readonly string[]): Promise<void> {
  const key = words.join(' ');
  if (key === '')
    throw new ThroughlineError('invalid', '/open needs a key.', { hint: '/list shows the conversations.' });
  try {
    await goTo(key);
  } catch (cause) {
    if (!hasCode(cause, 'not_found')) throw cause;
    const found = await engine.list({ limit: MOST_LOOKED_THROUGH });
    const names = found.map(({ id, key: each }) => each ?? id);
    const hint = withMeant(key, names, '/list shows them; "/new KEY" begins one.');
    throw new ThroughlineError('not_found', `There is no conversation "${key}".`, { cause, hint });
  }
}

function withMeant(word: string, known: readonly string[], hint: string): string {
  const meant = nearest(word, known);
  return meant === null ? hint : `Did you mean "${meant}"? ${hint}`;
}
