import type { Command } from 'commander';
import { given } from '../../../../core/input/arguments.ts';
import type { PublicSandbox, SandboxView } from '../../../../core/public/sandbox.ts';
import type { ExecResult } from '../../../../core/sandbox/sandbox.ts';
import { inPages } from '../../../../flow/pages.ts';
import type { EngineSandboxes } from '../../../../ports/engine/sandboxes.ts';
import { addHelp, type Cli, subcommand } from '../../cli.ts';
import { EXEC_EXIT, exitOfSignal } from '../../exit-codes.ts';
import { MEBIBYTE } from '../../input.ts';
import { counted, time } from '../../lines.ts';
import { type Output, styled } from '../../output.ts';
import { oneLine } from '../../terminal-text.ts';

export function define(command: Command, cli: Cli): void {
  command.helpCommand(false);
  subcommand(command, 'list', {
    summary: 'list sandboxes, newest first',
    isDefault: true,
    examples: ['throughline sandbox list', "throughline sandbox list --json | jq -r '.id'"],
  }).action(() => list(cli));
  subcommand(command, 'show', {
    summary: 'show a sandbox: what was set up, and who works in it',
    description: 'Show a sandbox: what was set up, and the conversations that work in it with their sessions.',
    examples: ['throughline sandbox show website', 'throughline sandbox show website --json'],
  })
    .argument('<sandbox>', 'its name or id')
    .option('--measure', 'measure its size now')
    .action((sandbox: string, flags: { measure?: boolean }) => show(sandbox, flags, cli));
  defineChanges(command, cli);
  addHelp(command, {
    about:
      'A sandbox is where the agent of a conversation works. A conversation has its own sandbox, or shares a named one with other ' +
      'conversations of the same owner.',
    examples: ['throughline sandbox', 'throughline sandbox show website'],
  });
}

function defineChanges(command: Command, cli: Cli): void {
  subcommand(command, 'open', {
    summary: 'make a shared sandbox and set it up',
    description: 'Make the shared sandbox of this name where it is missing, and set it up.',
    examples: ['throughline sandbox open website'],
  })
    .argument('<name>', 'the name that conversations share it by')
    .action((name: string) => change(cli, (sandboxes) => sandboxes.open(name)));
  subcommand(command, 'exec', {
    summary: 'run a command in a sandbox',
    description: 'Run a command in a sandbox, as agents run there.',
    about:
      'Its standard output and standard error are printed when it has ended: of each, the end. It is ended after ten minutes, counted from ' +
      'the start of this command, with the set-up that the sandbox may need first.\n' +
      'Exit code: that of the command, or 128 and the number of the signal that ended it. 124: it was ended after ten minutes. 125: it was not ' +
      'run, or its result is not known; "throughline:" on stderr says why.',
    examples: ['throughline sandbox exec website -- git status', 'throughline sandbox exec website --json -- npm test'],
  })
    .argument('<sandbox>', 'its name or id')
    .argument('<command...>', 'after "--": the program and its arguments')
    .action((sandbox: string, words: string[]) => exec(sandbox, words, cli));
  subcommand(command, 'rest', {
    summary: 'end the sessions that wait in a sandbox, and stop it',
    description:
      'End the sessions that wait for a prompt in a sandbox, and stop what keeps it running. The next turn reopens it.',
    examples: ['throughline sandbox rest website'],
  })
    .argument('<sandbox>', 'its name or id')
    .action((sandbox: string) => change(cli, (sandboxes) => sandboxes.rest(sandbox)));
  subcommand(command, 'rm', {
    summary: 'delete a sandbox with everything in it',
    description: 'Delete a sandbox with everything in it. The next turn of a conversation in it makes it again, empty.',
    about:
      'Refused while a turn, a task or a command works in it, and when it contains unsaved work: files outside of git repositories, uncommitted changes, ' +
      'commits that were not pushed. Also when it contains the directory of another conversation.',
    examples: ['throughline sandbox rm website', 'throughline sandbox rm website --force'],
  })
    .argument('<sandbox>', 'its name or id')
    .option('--force', 'also when it contains unsaved work, or the directory of another conversation')
    .action((sandbox: string, flags: { force?: boolean }) => remove(sandbox, flags, cli));
}

async function change(cli: Cli, work: (sandboxes: EngineSandboxes) => Promise<PublicSandbox>): Promise<void> {
  await cli.withEngine(async ({ sandboxes }) => {
    const changed = await work(sandboxes);
    cli.output.result(changed, ...line(changed));
  });
}

async function remove(sandbox: string, flags: { force?: boolean }, { output, withEngine }: Cli): Promise<void> {
  await withEngine(async ({ sandboxes }) => {
    const removed = await sandboxes.remove(sandbox, flags);
    output.result(removed, `Removed ${removed.sandboxId}.`);
  });
}

async function exec(sandbox: string, words: readonly string[], { output, withEngine }: Cli): Promise<void> {
  await withEngine(async ({ sandboxes }) => {
    const ran = await sandboxes.exec(sandbox, words);
    if (output.json) output.value(ran);
    else {
      output.text(ran.stdout);
      output.errorText(ran.stderr);
      if (ran.cut) output.note('The beginning of the output is left out: only its end is kept.');
    }
    return exitOf(ran, output);
  });
}

function exitOf({ code, signal, timedOut }: ExecResult, output: Output): number {
  if (!timedOut) return code ?? exitOfSignal(signal ?? '');
  const message = 'The command took longer than ten minutes and was ended.';
  const hint = 'Run what takes longer in the background there, or let an agent do it.';
  output.failure({ code: 'timed_out', message, hint });
  return EXEC_EXIT.timedOut;
}

async function list({ output, lookAt }: Cli): Promise<void> {
  await lookAt(async ({ sandboxes }) => {
    const all = inPages<PublicSandbox>((last) => sandboxes.list(given({ before: last?.id })));
    await output.each(all, (sandbox) => output.line(...line(sandbox)), 'There are no sandboxes yet.');
    const { sandboxes: count, bytes } = await sandboxes.diskUse();
    if (bytes > 0)
      output.note(`Sandboxes: ${count}. Size of those that were measured: ${Math.ceil(bytes / MEBIBYTE)} MiB.`);
  });
}

function line({ id, name, state, usedAt, conversations, disk }: PublicSandbox) {
  const size = disk === null ? '' : `, ${Math.ceil((disk.work + disk.state + disk.copies) / MEBIBYTE)} MiB`;
  return [
    styled('bold', id),
    `  ${state}, ${counted(conversations, 'conversation')}${size}, used ${time(usedAt)}`,
    styled('dim', name ? `  ${oneLine(name)}` : ''),
  ];
}

async function show(idOrName: string, flags: { measure?: boolean }, { output, lookAt }: Cli): Promise<void> {
  await lookAt(async ({ sandboxes }) => {
    const found = await sandboxes.show(idOrName, flags);
    if (output.json) output.value(found);
    else for (const one of shown(found)) output.line(...one);
  });
}

function* shown({ sandbox, setup, uses }: SandboxView) {
  yield line(sandbox);
  const { disk } = sandbox;
  if (disk !== null) yield [`  work ${disk.work} bytes, agents' files ${disk.state}, our copies ${disk.copies}`];
  for (const { name, code, ms, output } of setup) {
    const how =
      code === 0 ? styled('green', 'done') : styled('red', code === null ? 'not ended' : `failed with ${code}`);
    yield ['  set-up ', styled('bold', oneLine(name)), ' ', how, ` in ${ms} ms`];
    if (code !== 0 && output !== '') yield [`    ${oneLine(output)}`];
  }
  for (const { conversationId, sessionId } of uses) {
    yield [
      `  conversation ${conversationId}, `,
      sessionId === null ? 'no session yet' : `session ${oneLine(sessionId)}`,
    ];
  }
}
