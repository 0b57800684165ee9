import type { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { addExamples } from '../examples.ts';
import { defineCancel } from '../task/cancel.ts';
import { defineList } from '../task/list.ts';
import { defineReport } from '../task/report.ts';
import { defineRetry } from '../task/retry.ts';
import { defineRun } from '../task/run.ts';
import { defineShow } from '../task/show.ts';
import { defineUsage } from '../task/usage.ts';

export function define(command: Command, cli: Cli): void {
  command.addHelpText(
    'after',
    '\nA task is a goal, gone over in turns until its gate passes. Each has a conversation and a directory of its own; tasks\n' +
      'of one milestone share a conversation, and so what was said in it.',
  );
  for (const defineOne of [defineRun, defineList, defineShow, defineCancel, defineRetry, defineReport, defineUsage]) {
    defineOne(command, cli);
  }
  addExamples(
    command,
    `throughline task run "Make the tests pass" --gate 'npm test' --cwd . --budget '2 USD'`,
    'throughline task run --file tasks.yaml',
    'throughline task report NAME > report.md',
  );
}
