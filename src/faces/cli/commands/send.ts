import { type Command, Option } from 'commander';
import { ThroughlineError } from '../../../core/errors.ts';
import { POLICIES, type RestoreOverride, RUNGS } from '../../../core/restore-settings.ts';
import type { PermissionMode } from '../../../core/turn.ts';
import type { ConversationSpec, SubmitOptions } from '../../../ports/engine.ts';
import { defaultPermissions } from '../at-terminal.ts';
import type { Cli } from '../cli.ts';
import { addExamples } from '../examples.ts';
import { directory, wholeNumber } from '../option-values.ts';
import { holdStopSignals } from '../stop-signals.ts';

interface SendFlags {
  readonly agent?: string;
  readonly session?: string;
  readonly cwd?: string;
  readonly requestId?: string;
  readonly restore?: (typeof POLICIES)[number];
  readonly rung?: (typeof RUNGS)[number];
  readonly budgetTokens?: number;
  readonly lastTurns?: number;
  readonly allowTools?: boolean;
  readonly permissions?: PermissionMode;
  readonly title?: string;
  readonly detach?: boolean;
}

export function define(command: Command, cli: Cli): void {
  command
    .argument('<key>', 'the conversation: its key or id; made when there is none')
    .argument('<prompt>', 'what to say; - reads it from stdin')
    .option('--agent <name>', 'who answers; else the agent of the turn before')
    .option('--session <id>', "take this existing session of the agent's own, or fail")
    .option('--cwd <dir>', 'where the agent works; fixed when the conversation is made', directory)
    .option('--request-id <id>', 'the same id and prompt again is the same turn: safe to repeat')
    .addOption(new Option('--restore <policy>', 'what to do when the context is lost').choices(POLICIES))
    .addOption(new Option('--rung <rung>', 'restore in this way and no other').choices(RUNGS))
    .option('--budget-tokens <n>', 'the most tokens (estimated) of history to deliver', wholeNumber)
    .option('--last-turns <n>', 'the most turns of history to deliver', wholeNumber)
    .option('--allow-tools', 'a replay may run tools again')
    .addOption(
      new Option(
        '--permissions <mode>',
        'when the agent asks: ask (the person here; without a terminal, wait for "throughline answer"), or deny; ' +
          'else ask at a terminal and deny elsewhere',
      ).choices(['ask', 'deny']),
    )
    .option('--title <text>', 'name the conversation')
    .option('--detach', 'return when the turn is accepted; it runs in the background')
    .action((key: string, prompt: string, flags: SendFlags) => send(command, key, prompt, flags, cli));
  command.addHelpText(
    'after',
    '\nThe answer is written to stdout as it comes, all else to stderr. With --json every event of the conversation until\n' +
      'the end of the turn is a line, and the last line is {"kind":"result", "turn", "reply", "receipt"}.',
  );
  addExamples(
    command,
    'throughline send notes "The codeword is osprey"',
    'git diff | throughline send review - --agent scripted --cwd .',
    'throughline send nightly "Run the checks" --request-id 2026-01-31 --json',
  );
}

async function send(command: Command, key: string, prompt: string, flags: SendFlags, cli: Cli): Promise<void> {
  const text = prompt === '-' ? await (await import('../read-input.ts')).readPrompt() : prompt;
  // Before anything is stored: a prompt that is refused must not leave an empty conversation behind.
  if (text.trim() === '') throw new ThroughlineError('invalid', 'The prompt is empty.');
  if (flags.detach) {
    const { sendDetached } = await import('../detach.ts');
    return cli.exitWith(await sendDetached(command, key, text, cli));
  }
  const permissions = flags.permissions ?? defaultPermissions(cli.output);
  await cli.withEngine(async (engine) => {
    const { id } = await engine.ensure(conversationOf(key, flags));
    holdStopSignals(cli.output);
    const submitted = await engine.submit(id, text, submitOptions(flags, permissions));
    if (submitted.duplicate) cli.output.note('This request was accepted before; this is its turn.');
    // Loaded here, because meanwhile the agent starts.
    const { watchTurn } = await import('../watch-turn.ts');
    return watchTurn(engine, submitted, cli, permissions);
  });
}

function conversationOf(key: string, { agent, title, cwd }: SendFlags): ConversationSpec {
  return { key, ...(agent && { agent }), ...(title !== undefined && { title }), ...(cwd !== undefined && { cwd }) };
}

function submitOptions(flags: SendFlags, permissions: PermissionMode): SubmitOptions {
  const restore = restoreOf(flags);
  return {
    permissions,
    ...(flags.requestId !== undefined && { requestId: flags.requestId }),
    ...(flags.agent && { agent: flags.agent }),
    ...(flags.session !== undefined && { session: flags.session }),
    ...(Object.keys(restore).length > 0 && { restore }),
  };
}

function restoreOf({ restore, rung, budgetTokens, lastTurns, allowTools }: SendFlags): RestoreOverride {
  return {
    ...(restore && { policy: restore }),
    ...(rung && { rung }),
    ...(budgetTokens !== undefined && { budgetTokens }),
    ...(lastTurns !== undefined && { lastTurns }),
    ...(allowTools && { allowTools }),
  };
}
