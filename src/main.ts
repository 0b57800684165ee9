import { readFileSync } from 'node:fs';
import { composeCli } from './compose-cli.ts';
import { run } from './faces/cli/run.ts';
import { systemClock } from './host/clock.ts';
import { reportBug } from './host/report.ts';

/*
 * The executable: gives the process of a command its exit code. It does not call `exit`, so that all output is written before the process
 * ends.
 */
const { stdout, stderr, env } = process;
const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
const parts = composeCli({ env, version });

// A bug in a callback, which no command catches: prints one line, and the stack only with THROUGHLINE_DEBUG.
process.on('uncaughtException', (error) => {
  reportBug(error, 'running the command');
  process.exit(1);
});
// No top-level await: the published program is compiled to CommonJS. If the process ends before its command, the command has failed.
process.exitCode = 1;
void run(process.argv.slice(2), { parts, version, stdout, stderr, env, clock: systemClock }).then((code) => {
  process.exitCode = code;
});
