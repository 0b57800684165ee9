import type { Command } from 'commander';
import { ThroughlineError } from '../../../../core/errors.ts';
import type { Doctor, Finding } from '../../../../ports/doctor.ts';
import { addHelp, type Cli } from '../../cli.ts';
import { DONE } from '../../exit-codes.ts';
import { type Output, styled } from '../../output.ts';
import { oneLine } from '../../terminal-text.ts';
import { showAgent } from '../agents/agents.ts';

export function define(command: Command, cli: Cli): void {
  command
    .option('--fix', 'repair what is found')
    .option('--accept-loss', 'no longer report stored data that is missing')
    .option('--delete-left-over', 'delete sandboxes on other machines that no conversation here has')
    .option('--no-agents', 'do not look at the agents')
    .action((flags: Flags) => doctor(flags, cli));
  addHelp(command, {
    about:
      'Checks the database for damage and loss, and whether the data can be written. Looks for leases, turns, sessions, sandboxes, ' +
      'processes and tasks that no living process holds. Asks the running server what does not work. Also lists the agents, as ' +
      '"throughline agents" does; a missing agent is not a problem. Without an option nothing is changed.\n' +
      '--fix moves sandboxes without a conversation aside. It deletes only what an unfinished "throughline erase --sandbox", a killed ' +
      'restore or a killed probe of an agent left. --delete-left-over deletes sandboxes on other machines that no conversation of this ' +
      'data home has, unless programs run in them or they contain unsaved work. Check first whether other data homes have sandboxes there.\n' +
      'Exit code 1: a problem remains. Leftovers of erased conversations and sandboxes on other machines are listed, but they are a ' +
      'problem only if --delete-left-over cannot delete them.',
    examples: ['throughline doctor', 'throughline doctor --fix --json', 'throughline doctor --accept-loss'],
  });
}

interface Flags {
  readonly fix?: boolean;
  readonly acceptLoss?: boolean;
  readonly deleteLeftOver?: boolean;
  readonly agents: boolean;
}

async function doctor(flags: Flags, { parts, options, looking, output, exitWith, waits }: Cli): Promise<void> {
  const { fix = false, acceptLoss = false, deleteLeftOver = false } = flags;
  const given = { '--fix': fix, '--accept-loss': acceptLoss, '--delete-left-over': deleteLeftOver };
  const changes = Object.values(given).includes(true);
  output.waitFor(waits);
  const desk = await parts.doctor(changes ? options : looking);
  try {
    const seen = new Set<string>();
    let [problems, left] = [0, 0];
    // A repair may uncover something for another check, so we look again until nothing new is found.
    for (let found = await desk.examine(); found.length > 0; found = changes ? await unseen(desk, seen) : []) {
      for (const finding of found) {
        seen.add(nameOf(finding));
        if (!finding.isNote) problems += 1;
        const asked = finding.remedy !== null && given[finding.repairedBy ?? '--fix'];
        const failure = asked ? await repair(finding) : 'not repaired';
        if (failure !== null && (asked || !finding.isNote)) left += 1;
        show(output, finding, failure, asked);
      }
    }
    if (problems + left === 0 && !output.json) output.line('No problems found.');
    for (const agent of flags.agents ? await desk.agents() : []) {
      if (output.json) output.value({ check: 'agents', ...agent });
      else showAgent(agent, output);
    }
    exitWith(left === 0 ? DONE : 1);
  } finally {
    await desk.close();
  }
}

const nameOf = ({ check, subject, process = '' }: Finding) => `${check} ${subject} ${process}`;

async function unseen(desk: Doctor, seen: ReadonlySet<string>): Promise<Finding[]> {
  return (await desk.examine()).filter((finding) => !seen.has(nameOf(finding)));
}

/** Null: it is repaired. Otherwise the reason why not. */
async function repair(finding: Finding): Promise<string | null> {
  try {
    await finding.repair();
    return null;
  } catch (error) {
    if (error instanceof ThroughlineError) return `${error.message} ${error.hint ?? ''}`.trim();
    throw error;
  }
}

function show(
  output: Output,
  { check, subject, process, problem, remedy, repairedBy = '--fix', isNote }: Finding,
  failure: string | null,
  asked: boolean,
): void {
  if (output.json) {
    const by = remedy === null ? null : repairedBy;
    const found = { check, subject, problem, remedy, repairedBy: by, repaired: failure === null };
    output.value({ ...found, ...(isNote && { isNote }), ...(process && { process }) });
    return;
  }
  const which = process === undefined ? subject : `${subject} (${process})`;
  const said = (text: string) => output.runnable(oneLine(text));
  output.line(styled('bold', oneLine(which)), `: ${said(problem)}`);
  const done = repairedBy === '--fix' ? 'repaired' : 'done'; // acknowledging a loss repairs nothing
  if (failure === null) output.line(styled('green', `  ${done}: ${said(remedy ?? '')}`));
  else if (asked) output.line(styled('red', `  not repaired: ${said(failure)}`));
  else if (remedy !== null) output.line(styled('dim', `  ${repairedBy}: ${said(remedy)}`));
}
