import type { Command } from 'commander';
import { addHelp, type Cli } from '../../cli.ts';
import { defineCancel } from './cancel.ts';
import { defineList } from './list.ts';
import { defineReport } from './report.ts';
import { defineRetry } from './retry.ts';
import { defineRun } from './run.ts';
import { defineShow } from './show.ts';
import { defineUsage } from './usage.ts';

export function define(command: Command, cli: Cli): void {
  for (const defineOne of [defineRun, defineList, defineShow, defineCancel, defineRetry, defineReport, defineUsage]) {
    defineOne(command, cli);
  }
  addHelp(command, {
    about:
      'A task is a goal that an agent works on, turn by turn, until its gate passes. Each task has its own conversation and\n' +
      'directory. Tasks of one milestone share a conversation, so each knows what was said before.',
    examples: [
      `throughline task run "Make the tests pass" --gate 'npm test' --cwd . --budget '2 USD'`,
      'throughline task run --file tasks.yaml',
      'throughline task report NAME > report.md',
    ],
  });
}
