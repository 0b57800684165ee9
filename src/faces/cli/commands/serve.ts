import { type Command, Option } from 'commander';
import type { DemoConversation, LogLevel, Serving } from '../../../ports/server.ts';
import type { Cli } from '../cli.ts';
import { addExamples } from '../examples.ts';
import { DONE, EXIT } from '../exit-codes.ts';
import { portNumber, wholeNumber } from '../option-values.ts';
import { styled } from '../output.ts';
import { startDemoConversation } from '../serve-demo.ts';
import { onStopSignals } from '../stop-signals.ts';

const LOG_LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error', 'silent'];

interface ServeFlags {
  readonly host: string;
  readonly port?: number;
  readonly publicUrl?: string;
  readonly grace: number;
  readonly logLevel?: LogLevel;
  readonly demo?: boolean;
}

export function define(command: Command, cli: Cli): void {
  command
    .option('--host <address>', 'where to listen; beyond loopback only with --public-url', '127.0.0.1')
    .option('--port <n>', 'the port; else 7717, or another one that is free', portNumber)
    .option('--public-url <https-url>', 'how the world calls this server, through something that ends TLS before it')
    .option('--grace <seconds>', 'how long running turns may take to end when the server is stopped', wholeNumber, 10)
    .addOption(
      new Option('--log-level <level>', 'what is logged to stderr; else info, and warn at a terminal').choices(
        LOG_LEVELS,
      ),
    )
    .option('--demo', 'make a conversation to look at; its agent is Claude if that is installed, its model scripted')
    .action((flags: ServeFlags) => serve(flags, cli));
  command.addHelpText(
    'after',
    '\nRuns the turns of every conversation of the data home, and serves them over HTTP: on loopback, and on a unix socket in\n' +
      'the data home. Both need the token there (server/token), or a key. The link printed signs a browser in, once; "throughline\n' +
      'link" prints another. A data home has one server at a time.\n' +
      'Ctrl-C lets running turns end; a second one does not wait. What is queued waits for the next server.',
  );
  addExamples(
    command,
    'throughline serve',
    'throughline serve --port 8080 --demo',
    'throughline serve --public-url https://agents.example.org --json',
  );
}

async function serve(flags: ServeFlags, { parts, output, options, exitWith }: Cli): Promise<void> {
  const { host, port = null, publicUrl, grace } = flags;
  const logLevel = flags.logLevel ?? (process.stderr.isTTY ? 'warn' : 'info');
  const serving = await parts.serve({ ...options, host, port, publicUrl, logLevel, demo: flags.demo === true });
  const stopped = new Promise<void>((resolve) => {
    const stopListening = onStopSignals({
      cancel: () => resolve(),
      kill: () => process.exit(EXIT.cancelled),
      terminate: () => resolve(),
    });
    void stopListening;
  });
  const demo = serving.demo === null ? null : await startDemo(serving.demo).catch(endWith);
  const link = serving.newLink();
  if (output.json) {
    const { url, socket, home } = serving;
    output.value({ kind: 'serving', url, link, socket, home, pid: process.pid, ...(demo && { demo }) });
  } else introduce(serving, link);
  await stopped;
  output.note('ending; running turns may take a moment');
  await serving.close({ graceMs: grace * 1_000 });
  exitWith(DONE);

  async function startDemo(demo: DemoConversation): Promise<DemoConversation | null> {
    if (await startDemoConversation(serving.engine, demo)) return demo;
    output.note(`There is no demo: the settings have no agent "${demo.agent}".`);
    return null;
  }

  async function endWith(error: unknown): Promise<never> {
    await serving.close({ graceMs: 0 });
    throw error;
  }

  function introduce({ url, home }: Serving, link: string): void {
    output.line('Throughline serves at ', styled('bold', url));
    output.line(`  open    ${link}`);
    output.line(styled('dim', '          (signs this browser in; works once, within 15 minutes)'));
    output.line(`  data    ${home}`);
    if (demo) {
      output.line(`  demo    the conversation "${demo.key}"`);
      output.line(styled('yellow', `          ${demo.about}`));
    }
    output.line(styled('dim', 'Ctrl-C ends it.'));
  }
}
