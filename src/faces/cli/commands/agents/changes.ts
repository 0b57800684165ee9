import type { Command } from 'commander';
import type { ChangedFile, Changes, Keep } from '../../../../core/changes.ts';
import { ThroughlineError } from '../../../../core/errors.ts';
import { given } from '../../../../core/input/arguments.ts';
import { quotedPath } from '../../../../core/input/visible.ts';
import { addHelp, type Cli } from '../../cli.ts';
import { counted } from '../../lines.ts';
import type { Output } from '../../output.ts';
import { styled } from '../../output.ts';
import { codeText, oneLine } from '../../terminal-text.ts';

interface ChangesFlags extends Keep {
  readonly patch?: boolean;
  readonly discard?: boolean;
  readonly yes?: boolean;
}

export function define(command: Command, cli: Cli): void {
  command
    .argument('<key>', 'the conversation: its key or id')
    .option('--patch', 'also the changed lines')
    .option('--commit <message>', 'in a worktree: commit all changes on its branch')
    .option(
      '--merge',
      'in a worktree: merge its commits into the branch of the directory that the conversation was given',
    )
    .option('--discard', 'in a worktree: discard uncommitted changes')
    .option('--yes', 'confirm --discard: it cannot be undone')
    .action((key: string, flags: ChangesFlags) => changes(key, flags, cli));
  addHelp(command, {
    about:
      'Compares the directory of the conversation with the last commit of the git repository that it is in, and lists untracked files. ' +
      'Runs nothing that the repository names: no hooks, filters or external diffs. Exit code 4: there is no repository. ' +
      'A conversation that works in a worktree of its own (--worktree of "throughline send") can have its changes committed, merged and ' +
      'discarded here, while no turn runs. A commit takes 1 GiB of changed files at most: the largest ones beyond that are left out and named.',
    examples: [
      'throughline changes notes',
      'throughline changes notes --patch',
      "throughline changes notes --json | jq -r '.files[].path'",
      'throughline changes parser --commit "Make the parser faster" --merge',
      'throughline changes parser --discard --yes',
    ],
  });
}

async function changes(key: string, flags: ChangesFlags, cli: Cli): Promise<void> {
  const { commit, merge, discard = false, yes = false, patch = false } = flags;
  const keeps = commit !== undefined || merge !== undefined;
  if (discard && keeps) {
    throw new ThroughlineError('invalid', '"--discard" cannot be used with "--commit" or "--merge".');
  }
  if (discard && !yes) {
    throw new ThroughlineError('invalid', 'Discarding cannot be undone.', { hint: 'Add --yes to confirm.' });
  }
  if (keeps) return keep(key, given({ commit, merge }), cli);
  if (discard) return discardChanges(key, cli);
  await cli.lookAt(async (engine) => {
    const found = await engine.changes(key);
    cli.output.show(found, () => show(found, patch, cli.output));
  });
}

function show(found: Changes, patch: boolean, output: Output): void {
  for (const file of found.files) {
    output.line(styled('bold', codeText(quotedPath(file.path))), `  ${file.change}${linesOf(file)}`);
    if (patch && file.patch !== null) output.line(codeText(file.patch.trimEnd()));
  }
  if (found.more > 0) output.note(`And at least ${counted(found.more, 'more file')}.`);
  if (found.files.length === 0) output.note('Nothing has changed since the last commit.');
  const { worktree } = found;
  if (worktree === undefined) return;
  const unmerged = worktree.unmerged === 0 ? '' : ` ${counted(worktree.unmerged, 'commit')} there not merged yet.`;
  output.note(oneLine(`The worktree is ${worktree.directory}, on the branch ${worktree.branch}.${unmerged}`));
}

async function keep(key: string, what: Keep, { output, withEngine }: Cli): Promise<void> {
  await withEngine(async (engine) => {
    const kept = await engine.keepChanges(key, what);
    const done = [
      kept.commit === null ? [] : `Committed ${kept.commit.slice(0, 10)} on ${kept.branch}.`,
      kept.merged === null ? [] : `Merged: the directory of the conversation is at ${kept.merged.slice(0, 10)}.`,
    ];
    output.result(kept, done.flat().join(' '));
    for (const { path, bytes } of kept.leftOut.slice(0, MOST_NAMED)) {
      output.note(
        styled('yellow', `Left out, because it is too large: ${quotedPath(path)} (${(bytes / 1e9).toFixed(1)} GB).`),
      );
    }
    const more = kept.leftOut.length - MOST_NAMED;
    if (more > 0) output.note(styled('yellow', `Left out, too: ${counted(more, 'more file')}.`));
  });
}

/** How many files that a commit leaves out are named. */
const MOST_NAMED = 10;

async function discardChanges(key: string, { output, withEngine }: Cli): Promise<void> {
  await withEngine(async (engine) => {
    await engine.discardChanges(key);
    output.result({ discarded: key }, `Discarded the uncommitted changes of ${oneLine(key)}.`);
  });
}

function linesOf({ added, removed }: ChangedFile): string {
  return added === null ? '' : `, +${added} -${removed}`;
}
