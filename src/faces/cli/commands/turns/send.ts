import { type Command, Option } from 'commander';
import { ThroughlineError } from '../../../../core/errors.ts';
import { given } from '../../../../core/input/arguments.ts';
import { POLICIES, type Policy, type RestoreOverride, RUNGS } from '../../../../core/restore/restore-settings.ts';
import { PERMISSION_MODES, type PermissionMode } from '../../../../core/turn/turn.ts';
import type { ConversationSpec, SubmitOptions } from '../../../../ports/engine.ts';
import { addHelp, type Cli } from '../../cli.ts';
import { directory, readPrompt, seconds, wholeNumber } from '../../input.ts';
import { holdStopSignals } from '../../stop-signals.ts';
import { defaultPermissions } from './answers.ts';

interface SendFlags
  extends Omit<SubmitOptions, 'restore' | 'limits'>,
    Omit<RestoreOverride, 'policy'>,
    Pick<ConversationSpec, 'cwd' | 'title' | 'limitPerDay'> {
  readonly restore?: Policy;
  readonly timeLimit?: number;
  readonly stallLimit?: number;
  readonly detach?: boolean;
}

export function define(command: Command, cli: Cli): void {
  command
    .argument('<key>', 'the conversation: its key or id; a new key creates a conversation')
    .argument('<prompt>', 'the prompt; - reads it from stdin')
    .option('--agent <name>', 'the agent that answers (default: the agent of the previous turn)')
    .option('--session <id>', 'continue in this existing session of the agent, or fail; its own turns come first')
    .option('--new-session <id>', 'open a new session with this id, for agents that take one (Claude: a UUID), or fail')
    .option('--cwd <dir>', 'where the agent works; fixed once the conversation exists', directory)
    .option('--request-id <id>', 'makes a repeated command safe: the same id and prompt is the same turn')
    .addOption(
      new Option(
        '--restore <policy>',
        'required: fail if the context cannot be restored; auto: then start a fresh session; off: always start fresh',
      ).choices(POLICIES),
    )
    .addOption(new Option('--rung <rung>', 'restore only in this way').choices(RUNGS))
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
    .option('--stall-limit <seconds>', 'end the turn when the agent gives no sign of life for so long', seconds)
    .option('--limit-per-day <amount>', 'how much may be spent in the conversation on a day: "2 USD", "50k tokens"')
    .option('--title <text>', 'set the title of the conversation')
    .option('--detach', 'return when the turn is accepted, and run it in the background')
    .action((key: string, prompt: string, flags: SendFlags) => send(command, key, prompt, flags, cli));
  addHelp(command, {
    about:
      'The answer goes to stdout as it arrives, everything else to stderr. With --json, every event of the conversation until\n' +
      'the end of the turn is one line, and the last line is {"kind":"result", "turn", "reply", "receipt", "denied"}.',
    examples: [
      'throughline send notes "The codeword is osprey"',
      'git diff | throughline send review - --agent claude --cwd .',
      'throughline send nightly "Run the checks" --request-id 2026-01-31 --json',
    ],
  });
}

async function send(command: Command, key: string, prompt: string, flags: SendFlags, cli: Cli): Promise<void> {
  const text = await readPrompt(prompt);
  // Before anything is stored: a refused prompt must not leave an empty conversation behind.
  if (text.trim() === '') throw new ThroughlineError('invalid', 'The prompt is empty.');
  if (flags.detach) {
    const { sendDetached } = await import('./detach.ts');
    return sendDetached(command, key, text, cli);
  }
  const permissions = flags.permissions ?? defaultPermissions(cli.output);
  await cli.withEngine(async (engine) => {
    const { agent, title, cwd, limitPerDay } = flags;
    // The first prompt to a new key creates the conversation; only what it cannot give has to be given before.
    const isPlain = title === undefined && cwd === undefined && limitPerDay === undefined;
    const name = isPlain ? key : (await engine.ensure({ key, ...given({ agent, title, cwd, limitPerDay }) })).id;
    holdStopSignals(cli.output);
    const submitted = await engine.submit(name, text, submitOptions(flags, permissions));
    if (submitted.duplicate) cli.output.note('This request was already accepted. This is its turn.');
    // Loaded only now, while the agent starts.
    const { watchTurn } = await import('./watch-turn.ts');
    return watchTurn(engine, submitted, cli, permissions);
  });
}

function submitOptions(flags: SendFlags, permissions: PermissionMode): SubmitOptions {
  const { requestId, agent, session, newSession, restore: policy, rung, budgetTokens, lastTurns, allowTools } = flags;
  const limits = given({ turnSeconds: flags.timeLimit, stallSeconds: flags.stallLimit });
  const restore: RestoreOverride = given({ policy, rung, budgetTokens, lastTurns, allowTools });
  return {
    permissions,
    ...given({ requestId, agent, session, newSession }),
    ...(Object.keys(restore).length > 0 && { restore }),
    ...(Object.keys(limits).length > 0 && { limits }),
  };
}
