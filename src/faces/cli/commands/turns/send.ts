import { type Command, Option } from 'commander';
import { ThroughlineError } from '../../../../core/errors.ts';
import { given } from '../../../../core/input/arguments.ts';
import { RUNGS } from '../../../../core/restore/restore-settings.ts';
import type { Choices } from '../../../../core/turn/choices.ts';
import { type Prompt, parsePrompt } from '../../../../core/turn/content.ts';
import { PERMISSION_MODES, type PermissionMode } from '../../../../core/turn/turn.ts';
import type { ConversationSpec, SubmitOptions } from '../../../../ports/engine.ts';
import { addHelp, type Cli } from '../../cli.ts';
import type { TurnFlags } from '../../input.ts';
import {
  directory,
  MOST_OF_PROMPT,
  NO_RUNG,
  readPromptOfStdin,
  readStdin,
  restoreOption,
  sayThatStdinIsRead,
  seconds,
  turnOptions,
  wholeNumber,
} from '../../input.ts';
import type { Output } from '../../output.ts';
import { holdStopSignals } from '../../stop-signals.ts';
import { defaultPermissions } from './answers.ts';

interface SendFlags
  extends Omit<SubmitOptions, 'restore' | 'limits'>,
    TurnFlags,
    Pick<ConversationSpec, 'cwd' | 'worktree' | 'title' | 'limitPerDay'> {
  readonly detach?: boolean;
  readonly file?: readonly string[];
  readonly image?: readonly string[];
  readonly set?: readonly string[];
  /** Used by `--detach`: stdin has content blocks. */
  readonly blocks?: boolean;
}

export function define(command: Command, cli: Cli): void {
  command
    .argument('<key>', 'the conversation: its key or id; a new key creates a conversation')
    .argument('[prompt...]', 'the prompt; - or nothing reads it from stdin')
    .option('--file <path>', 'attach a text file or an image; - is stdin; can be repeated', listed)
    .option('--image <path>', 'attach a PNG, JPEG, GIF or WebP image; can be repeated', listed)
    .option('--agent <agent>', 'the agent that answers (default: the agent of the previous turn)')
    .option('--model <model>', 'the model for this turn')
    .option('--mode <mode>', "the agent's mode for this turn")
    .option('--set <id=value>', 'a config option of the agent for this turn; can be repeated', listed)
    .option('--session <id>', 'continue in this existing session of the agent, or fail; its own turns come first')
    .option('--new-session <id>', 'open a new session with this id, for agents that take one (Claude: a UUID), or fail')
    .option('--cwd <dir>', 'where the agent works; fixed once the conversation exists', directory)
    .option('--worktree', 'work in a worktree of the git repository there (--cwd, or here), on a branch of its own')
    .option('--request-id <id>', 'makes a repeated command safe: the same id and prompt is the same turn')
    .addOption(restoreOption())
    .addOption(rungOption())
    .option('--rebuild', 'tell the history to a new session now, although the present one could continue')
    .option('--budget-tokens <n>', 'put at most this many tokens (estimated) of history before the prompt', wholeNumber)
    .option('--last-turns <n>', 'put at most this many turns of history before the prompt', wholeNumber)
    .option('--allow-tools', 'allow a replay to run tools again')
    .addOption(
      new Option(
        '--permissions <mode>',
        'when the agent asks for permission: ask you (without a terminal, wait for "throughline answer"), or deny ' +
          '(default: ask at a terminal, and deny elsewhere)',
      ).choices(PERMISSION_MODES),
    )
    .option('--time-limit <seconds>', 'end the turn when it takes longer', seconds)
    .option('--stall-limit <seconds>', 'end the turn when the agent sends nothing for this long', seconds)
    .option(
      '--deliver-to <place>',
      'where you will deliver the answer; the turn stays in "throughline pending" until you report the delivery',
    )
    .option('--limit-per-day <amount>', 'how much may be spent in the conversation on a day: "2 USD", "50k tokens"')
    .option('--title <text>', 'set the title of the conversation')
    .option('--detach', 'return when the turn is accepted, and run it in the background')
    .addOption(new Option('--blocks', 'stdin is the prompt as JSON content blocks').hideHelp())
    .action((key: string, words: string[], flags: SendFlags) => send(command, key, words, flags, cli));
  addHelp(command, {
    about:
      'The answer goes to stdout as it arrives, everything else to stderr. With --json, every event of the conversation until ' +
      'the end of the turn is one line, and the last line is {"kind":"result", "turn", "reply", "receipt", "denied"}. ' +
      'Files come before the prompt, each as a block of its own with its name. If the prompt is given as words, stdin is read ' +
      'only with "--file -". A prompt may have 8 MiB, including its files.',
    examples: [
      'throughline send notes "The codeword is osprey"',
      'throughline send notes "What does this screenshot show?" --image screen.png',
      'throughline send review "Is this change right?" --file change.diff --file notes.md',
      'git diff | throughline send review "Is this change right?" --file - --agent claude --cwd .',
      'throughline send parser "Make the parser faster" --worktree',
      'echo "Run the checks" | throughline send nightly',
      'throughline send nightly "Run the checks" --request-id 2026-01-31 --json',
    ],
  });
}

function rungOption(): Option {
  const means = 'if the session has to be restored, only in this way; none: in any way, whatever the settings prefer';
  return new Option('--rung <rung>', means).choices([...RUNGS, NO_RUNG]);
}

/** Parses `effort=high`. The values true and false become booleans. */
function configOf(texts: readonly string[]): NonNullable<Choices['config']> {
  const pairs = texts.map((text) => {
    const [, id, value = ''] = /^([^=]+)=(.+)$/s.exec(text) ?? [];
    if (id === undefined)
      throw new ThroughlineError('invalid', `"--set ${text}" must be ID=VALUE, as in --set effort=high.`);
    return [id, value === 'true' || value === 'false' ? value === 'true' : value] as const;
  });
  return Object.fromEntries(pairs);
}

function listed(path: string, before: readonly string[] = []): readonly string[] {
  return [...before, path];
}

async function send(
  command: Command,
  key: string,
  words: readonly string[],
  flags: SendFlags,
  cli: Cli,
): Promise<void> {
  // Before anything is stored: a refused prompt must not leave an empty conversation behind.
  const prompt = flags.blocks ? await blocksOfStdin() : await promptOf(words, flags, cli.output);
  if (flags.detach) {
    const { sendDetached } = await import('./sending/detach.ts');
    return sendDetached(command, key, prompt, cli);
  }
  const permissions = flags.permissions ?? defaultPermissions(cli.output);
  const options = submitOptions(flags, permissions);
  await cli.withEngine(async (engine) => {
    const { agent, title, worktree, limitPerDay } = flags;
    const cwd = flags.cwd ?? (worktree ? directory('.') : undefined);
    // The first prompt to a new key creates the conversation with these settings; an existing one is checked against them.
    const isPlain = title === undefined && cwd === undefined && limitPerDay === undefined;
    const create = isPlain ? undefined : given({ agent, title, cwd, worktree, limitPerDay });
    using _held = holdStopSignals(cli.output);
    const submitted = await engine.submit(key, prompt, { ...options, ...given({ create }) });
    if (submitted.duplicate) cli.output.note('This request was already accepted. This is its turn.');
    // Loaded only now, while the agent starts.
    const { watchTurn } = await import('./watch-turn.ts');
    return await watchTurn(engine, submitted, cli, permissions);
  });
}

/** The words of the person, or stdin in their place, and the files that go with them. */
async function promptOf(
  words: readonly string[],
  { file = [], image = [] }: SendFlags,
  output: Output,
): Promise<string | Prompt> {
  const files = [
    ...file.map((path) => ({ path, as: 'file' as const })),
    ...image.map((path) => ({ path, as: 'image' as const })),
  ];
  const asked = words.length === 1 && words[0] === '-';
  const attached = files.filter(({ path }) => path === '-').length;
  if (attached + Number(asked) > 1) {
    throw new ThroughlineError('invalid', 'Stdin can be read only once.', { hint: 'Write "-" in one place.' });
  }
  const text =
    asked || (words.length === 0 && attached === 0) ? await piped(asked, files.length > 0, output) : words.join(' ');
  if (files.length > 0) {
    const { withAttachments } = await import('./sending/attachments.ts');
    return withAttachments(text, files);
  }
  if (text.trim() !== '') return text;
  throw words.length === 0 ? noPrompt() : new ThroughlineError('invalid', 'The prompt is empty.');
}

/** `asked`: the prompt is `-`, so a terminal is read as well. `hasFiles`: the prompt needs no words. */
async function piped(asked: boolean, hasFiles: boolean, output: Output): Promise<string> {
  if (asked) sayThatStdinIsRead(output, 'the prompt');
  if (asked || !process.stdin.isTTY) return readPromptOfStdin();
  if (hasFiles) return '';
  throw noPrompt();
}

function noPrompt(): ThroughlineError {
  return new ThroughlineError('invalid', 'The prompt is missing.', {
    hint: 'Write it after the key, or pipe it in: echo "…" | throughline send KEY.',
  });
}

/** What `--detach` gives to its background process. */
async function blocksOfStdin(): Promise<Prompt> {
  return parsePrompt(JSON.parse((await readStdin(2 * MOST_OF_PROMPT)).toString('utf8')));
}

function submitOptions(flags: SendFlags, permissions: PermissionMode): SubmitOptions {
  const { requestId, agent, session, newSession, deliverTo, model, mode } = flags;
  return {
    permissions,
    ...given({ requestId, agent, session, newSession, deliverTo, model, mode }),
    ...(flags.set && { config: configOf(flags.set) }),
    ...turnOptions(flags),
  };
}
