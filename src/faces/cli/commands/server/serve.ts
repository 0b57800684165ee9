import { fstatSync } from 'node:fs';
import { type Command, Option } from 'commander';
import { hasCode, ThroughlineError } from '../../../../core/errors.ts';
import type { Engine } from '../../../../ports/engine.ts';
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
  readonly allowOrigin?: readonly string[];
  readonly endWithParent?: true;
}

export function define(command: Command, cli: Cli): void {
  command
    .option('--host <address>', 'the address to listen on; one beyond loopback needs --public-url', '127.0.0.1')
    .option('--port <n>', 'the port to listen on (default: 7717, or another free one)', portNumber)
    .option('--public-url <https-url>', 'the public address of this server, behind a proxy that terminates TLS')
    .option('--trust-proxy', 'trust the X-Forwarded-For of that proxy, to slow down failed logins per client address')
    .option(
      '--allow-origin <url>',
      'let pages of this origin call the server, with a key; can be repeated',
      (url: string, before: readonly string[] = []) => [...before, url],
    )
    .option('--grace <seconds>', 'how long running turns may take to end when the server stops', wholeNumber, 10)
    .addOption(
      new Option('--log-level <level>', 'what to log on stderr (default: info, or warn at a terminal)').choices(
        LOG_LEVELS,
      ),
    )
    .option('--demo', 'create a demo conversation; its agent is Claude if that is installed, its model is scripted')
    .option('--end-with-parent', 'stop when the program that started this server ends; needs a pipe as stdin')
    .action((flags: ServeFlags) => serve(flags, cli));
  addHelp(command, {
    about:
      'Runs the turns of all conversations in the data home, and serves them over HTTP: on loopback, and on a unix socket in ' +
      'the data home. Both need the token of the data home (server/token) or a key. The printed link opens the page and signs ' +
      'a browser in, once; "throughline link" prints another. A data home has one server at a time.\n' +
      'Ctrl-C gives running turns time to end (--grace); a second Ctrl-C does not wait. Queued turns wait for the next server.',
    examples: [
      'throughline serve',
      'throughline serve --port 8080 --demo',
      'throughline serve --port 0 --json --end-with-parent',
      'throughline serve --allow-origin https://app.example.org --allow-origin http://localhost:5173',
      'throughline serve --public-url https://agents.example.org --trust-proxy --json',
    ],
  });
}

async function serve(flags: ServeFlags, { parts, output, options, waits }: Cli): Promise<void> {
  const { host, port = null, publicUrl, trustProxy = false, grace, demo = false, allowOrigin = [] } = flags;
  const logLevel = flags.logLevel ?? (process.stderr.isTTY ? 'warn' : 'info');
  const parent = flags.endWithParent ? endOfParent() : null;
  const reach = { host, port, publicUrl, trustProxy, allowOrigins: allowOrigin };
  output.waitFor(waits);
  const command = output.command('').trimEnd();
  const serving = await parts.serve({ ...options, ...reach, logLevel, demo, command });
  const stopped = new Promise<void>((resolve) => {
    onStopSignals({ cancel: resolve, kill: () => process.exit(EXIT.cancelled), terminate: resolve });
    void parent?.then(resolve);
  });
  const started = async () => ({ shown: await startDemo(serving, output), link: await firstLink(serving, output) });
  const { shown, link } = await started().catch(async (error: unknown) => {
    await serving.close({ graceMs: 0 });
    throw error;
  });
  output.waitFor(null);
  if (output.json) {
    const { url, socket, home } = serving;
    output.value({ kind: 'serving', url, link, socket, home, pid: process.pid, ...(shown && { demo: shown }) });
  } else introduce(serving, link, shown, output);
  await stopped;
  if (parent !== null) process.stdin.destroy(); // while it is open, this process would not end
  output.note('Stopping. Running turns may take a moment.');
  output.waitFor('waiting for running turns to end …');
  await serving.close({ graceMs: grace * 1_000 });
}

/**
 * Resolves when the writing end of stdin is closed: the system closes it however the parent ends. A process between the two (npx, a
 * start script) passes its stdin on, so this works where watching the parent's process id would not.
 */
function endOfParent(): Promise<void> {
  const stdin = fstatSync(0);
  if (!stdin.isFIFO() && !stdin.isSocket()) {
    throw new ThroughlineError('invalid', '--end-with-parent needs a pipe as stdin, which ends with the parent.', {
      hint: 'Start the server with a pipe as stdin, and keep the pipe open.',
    });
  }
  const { promise, resolve } = Promise.withResolvers<void>();
  process.stdin.on('error', () => resolve()).on('end', resolve);
  process.stdin.resume();
  return promise;
}

/** Null: the store cannot be written now. The server is useful without a link: it reports what does not work, and can be read. */
async function firstLink(serving: Serving, output: Output): Promise<string | null> {
  try {
    return await serving.newLink();
  } catch (error) {
    if (!(error instanceof ThroughlineError)) throw error;
    output.note(`There is no link to the page: ${error.message} Once that works again, "throughline link" prints one.`);
    return null;
  }
}

function introduce({ url, home }: Serving, link: string | null, demo: DemoConversation | null, output: Output): void {
  output.line('Throughline serves at ', styled('bold', url));
  if (link !== null) {
    output.line(`  open    ${link}`);
    output.line(styled('dim', '          (the page; the link signs a browser in, once, within 15 minutes)'));
  }
  output.line(`  data    ${home}`);
  if (demo !== null) {
    output.line(`  demo    the conversation "${demo.key}"`);
    output.line(styled('yellow', `          ${demo.about}`));
  }
  output.line(styled('dim', 'Press Ctrl-C to stop.'));
}

/**
 * The request ids are fixed: however often the server starts, each prompt is sent once. Null: no demo was asked for, or the
 * settings have no such agent; the server is useful without the demo.
 */
async function startDemo({ engine, demo }: Serving, output: Output): Promise<DemoConversation | null> {
  if (demo === null) return null;
  const { key, agent, title } = demo;
  try {
    await engine.ensure({ key, agent, title });
    const how = { agent, permissions: 'deny' } as const;
    const told = await engine.submit(key, 'The codeword is amber-heron', { ...how, requestId: `${key}-1` });
    // Not awaited: the server is ready before the demo has finished.
    askAnotherSession(engine, told.turn.id, () =>
      engine.submit(key, 'Which codewords have you seen?', { ...how, requestId: `${key}-2` }),
    ).catch(({ message }) => output.note(`The demo is incomplete: ${message}`));
    return demo;
  } catch (error) {
    if (!hasCode(error, 'agent_unavailable')) throw error;
    output.note(`There is no demo: the settings have no agent "${agent}".`);
    return null;
  }
}

/** The demo shows a seam: its second prompt is sent when the process that got the first one has ended. */
async function askAnotherSession(engine: Engine, told: string, ask: () => Promise<unknown>): Promise<void> {
  const { turn } = await engine.answerOf(told, { waitMs: 60_000 });
  const next = await engine.turns(turn.conversationId, { after: turn.n, limit: 1 });
  if (next.length > 0) return;
  await engine.kill(turn.conversationId);
  await ask();
}
