import { resolve } from 'node:path';
import type { Command } from 'commander';
import { ThroughlineError } from '../../../../core/errors.ts';
import { given } from '../../../../core/input/arguments.ts';
import type { PublicConversation } from '../../../../core/public/conversation.ts';
import { inPages } from '../../../../flow/pages.ts';
import type { ConversationSpec, Engine } from '../../../../ports/engine.ts';
import { chat as converse } from '../../chat/chat.ts';
import { freeKey } from '../../chat/slash.ts';
import { addHelp, type Cli } from '../../cli.ts';
import type { TurnFlags } from '../../input.ts';
import { orNull, restoreOption, seconds, turnOptions, wholeNumber } from '../../input.ts';
import { time } from '../../lines.ts';

interface ChatFlags extends Pick<ConversationSpec, 'title' | 'limitPerDay' | 'worktree'>, TurnFlags {
  readonly agent?: string;
  readonly continue?: boolean;
  /** False: a directory of its own. */
  readonly cwd?: string | false;
}

export function define(command: Command, cli: Cli): void {
  command
    .argument('[key]', 'the conversation: its key or id; a new key creates a conversation (default: a new one)')
    .option('--continue', 'continue the conversation that was last used in this directory')
    .option('--agent <agent>', 'the agent that answers (default: the agent of the previous turn)')
    .option(
      '--cwd <dir>',
      'where the agent of a new conversation works (default: here; with --server, a directory of its own)',
    )
    .option('--no-cwd', 'let it work in a directory of its own')
    .option('--worktree', 'let it work in a worktree of the git repository there, on a branch of its own')
    .option('--title <text>', 'set the title of a new conversation')
    .addOption(restoreOption())
    .option('--budget-tokens <n>', 'put at most this many tokens (estimated) of history before a prompt', wholeNumber)
    .option('--last-turns <n>', 'put at most this many turns of history before a prompt', wholeNumber)
    .option('--time-limit <seconds>', 'end a turn when it takes longer', seconds)
    .option('--stall-limit <seconds>', 'end a turn when the agent sends nothing for this long', seconds)
    .option('--limit-per-day <amount>', 'how much may be spent in a new conversation on a day: "2 USD", "50k tokens"')
    .action((key: string | undefined, flags: ChatFlags) => chat(key, flags, cli));
  addHelp(command, {
    about:
      'Enter sends. Alt-Enter makes a new line. Ctrl-C cancels the turn; pressed twice, it leaves. Prompts that you send while a turn runs are queued. ' +
      'A line that begins with a slash is a command: /help lists them. Needs a terminal; elsewhere, use "throughline send".',
    examples: [
      'throughline chat',
      'throughline chat --continue',
      'throughline chat notes --agent claude',
      'throughline chat --server https://agents.example.org review',
    ],
  });
}

async function chat(
  key: string | undefined,
  flags: ChatFlags,
  { parts, options, output, exitWith }: Cli,
): Promise<void> {
  checkTerminal(output.json);
  if (key !== undefined && flags.continue) {
    throw new ThroughlineError('invalid', 'Name a conversation, or use --continue, but not both.');
  }
  const isRemote = (options.server ?? process.env.THROUGHLINE_SERVER ?? '') !== '';
  const cwd = flags.cwd === false || (flags.cwd === undefined && isRemote) ? undefined : resolve(flags.cwd ?? '.');
  const { agent, title, limitPerDay, worktree } = flags;
  const specFor = (name: string): ConversationSpec => {
    return { key: name, ...given({ agent, cwd, worktree, title, limitPerDay }) };
  };
  const code = await converse({
    open: (onTrouble) => parts.chat({ ...options, onTrouble }),
    input: process.stdin,
    output: process.stdout,
    color: !process.env.NO_COLOR,
    waitFor: (what) => output.waitFor(what),
    runnable: (text) => output.runnable(text),
    agent,
    options: { permissions: 'ask', ...turnOptions(flags) },
    choose: async ({ engine }) => {
      if (flags.continue) return { existing: await lastIn(engine, cwd ?? resolve('.')) };
      const existing = key === undefined ? null : await orNull(engine.conversation(key));
      if (existing === null) return { spec: specFor(key ?? (await freeKey(engine, newName()))) };
      // An option is used or refused, never ignored.
      const pinned = given({ cwd: flags.cwd === undefined ? undefined : cwd, worktree });
      const isNamed = Object.keys(pinned).length > 0 || limitPerDay !== undefined || title !== undefined;
      if (!isNamed) return { existing };
      return {
        existing: await engine.ensure({ ...given({ key: existing.key ?? undefined, title, limitPerDay }), ...pinned }),
      };
    },
    spec: async ({ engine }, name) => {
      if (name !== undefined && (await orNull(engine.conversation(name))) !== null) {
        throw new ThroughlineError('conflict', `There is a conversation "${name}" already.`, {
          hint: `"/open ${name}" goes to it.`,
        });
      }
      return specFor(name ?? (await freeKey(engine, newName())));
    },
  });
  exitWith(code);
}

/** A chat draws on its terminal. Without a terminal that can show it, it is refused. */
function checkTerminal(json: boolean): void {
  const why = json
    ? '"chat" cannot be used with --json: it is for people.'
    : !process.stdin.isTTY || !process.stdout.isTTY
      ? '"chat" needs a terminal for its input and its output.'
      : process.env.TERM === 'dumb'
        ? 'This terminal (TERM=dumb) cannot show a chat.'
        : null;
  if (why !== null) throw new ThroughlineError('invalid', why, { hint: 'Use "throughline send KEY PROMPT" here.' });
}

/** The most recently changed conversation that works in the directory. */
async function lastIn(engine: Engine, directory: string): Promise<PublicConversation> {
  const pages = inPages<PublicConversation>((last) => engine.list(last === undefined ? {} : { before: last }));
  for await (const one of pages) if (one.cwd === directory && one.driver === 'worker') return one;
  throw new ThroughlineError('not_found', `No conversation works in ${directory} yet.`, {
    hint: 'Leave out --continue to begin one, or see "throughline list".',
  });
}

/** A name that sorts by time. */
function newName(): string {
  return `chat-${time(Date.now()).replaceAll(/[-:]/g, '').replace(' ', '-')}`;
}
