import { type Command, Option } from 'commander';
import { ThroughlineError } from '../../../../core/errors.ts';
import type { DemoConversation, LogLevel, ServeRequest, Serving } from '../../../../ports/server.ts';
import { addHelp, type Cli } from '../../cli.ts';
import { EXIT } from '../../exit-codes.ts';
import { portNumber, wholeNumber } from '../../input.ts';
import { type Output, styled } from '../../output.ts';
import { onStopSignals } from '../../stop-signals.ts';

const LOG_LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error', 'silent'];

interface ServeFlags extends Partial<Pick<ServeRequest, 'port' | 'publicUrl' | 'trustProxy' | 'logLevel' | 'demo'>> {
  readonly host: string;
  readonly grace: number;
}

export function define(command: Command, cli: Cli): void {
  command
    .option('--host <address>', 'the address to listen on; one beyond loopback needs --public-url', '127.0.0.1')
    .option('--port <n>', 'the port to listen on (default: 7717, or another free one)', portNumber)
    .option('--public-url <https-url>', 'the public address of this server, behind a proxy that terminates TLS')
    .option('--trust-proxy', 'believe the X-Forwarded-For of that proxy: failed logins are also slowed per address')
    .option('--grace <seconds>', 'how long running turns may take to end when the server stops', wholeNumber, 10)
    .addOption(
      new Option('--log-level <level>', 'what to log on stderr (default: info, or warn at a terminal)').choices(
        LOG_LEVELS,
      ),
    )
    .option('--demo', 'create a demo conversation; its agent is Claude if that is installed, its model is scripted')
    .action((flags: ServeFlags) => serve(flags, cli));
  addHelp(command, {
    about:
      'Runs the turns of all conversations in the data home, and serves them over HTTP: on loopback, and on a unix socket in\n' +
      'the data home. Both need the token of the data home (server/token) or a key. The printed link signs a browser in, once;\n' +
      '"throughline link" prints another. A data home has one server at a time.\n' +
      'Ctrl-C gives running turns time to end (--grace); a second Ctrl-C does not wait. Queued turns wait for the next server.',
    examples: [
      'throughline serve',
      'throughline serve --port 8080 --demo',
      'throughline serve --public-url https://agents.example.org --trust-proxy --json',
    ],
  });
}

async function serve(flags: ServeFlags, { parts, output, options }: Cli): Promise<void> {
  const { host, port = null, publicUrl, trustProxy = false, grace, demo: wantsDemo = false } = flags;
  const logLevel = flags.logLevel ?? (process.stderr.isTTY ? 'warn' : 'info');
  const serving = await parts.serve({ ...options, host, port, publicUrl, trustProxy, logLevel, demo: wantsDemo });
  const stopped = new Promise<void>((resolve) => {
    onStopSignals({ cancel: resolve, kill: () => process.exit(EXIT.cancelled), terminate: resolve });
  });
  const demo = await startDemo(serving, output).catch(async (error: unknown) => {
    await serving.close({ graceMs: 0 });
    throw error;
  });
  const link = serving.newLink();
  if (output.json) {
    const { url, socket, home } = serving;
    output.value({ kind: 'serving', url, link, socket, home, pid: process.pid, ...(demo && { demo }) });
  } else introduce(serving, link, demo, output);
  await stopped;
  output.note('Stopping. Running turns may take a moment.');
  await serving.close({ graceMs: grace * 1_000 });
}

function introduce({ url, home }: Serving, link: string, demo: DemoConversation | null, output: Output): void {
  output.line('Throughline serves at ', styled('bold', url));
  output.line(`  open    ${link}`);
  output.line(styled('dim', '          (signs this browser in; works once, within 15 minutes)'));
  output.line(`  data    ${home}`);
  if (demo !== null) {
    output.line(`  demo    the conversation "${demo.key}"`);
    output.line(styled('yellow', `          ${demo.about}`));
  }
  output.line(styled('dim', 'Press Ctrl-C to stop.'));
}

/**
 * The request ids are fixed: however often the server starts, each prompt is sent once. Null: no demo is wanted, or the
 * settings have no such agent; a server is useful without the demo.
 */
async function startDemo({ engine, demo }: Serving, output: Output): Promise<DemoConversation | null> {
  if (demo === null) return null;
  const { key, agent, title } = demo;
  try {
    await engine.ensure({ key, agent, title });
    const prompts = ['The codeword is amber-heron', 'Which codewords have you seen?'];
    for (const [index, prompt] of prompts.entries()) {
      await engine.submit(key, prompt, { requestId: `${key}-${index + 1}`, agent, permissions: 'deny' });
    }
    return demo;
  } catch (error) {
    if (!(error instanceof ThroughlineError && error.code === 'agent_unavailable')) throw error;
    output.note(`There is no demo: the settings have no agent "${agent}".`);
    return null;
  }
}
