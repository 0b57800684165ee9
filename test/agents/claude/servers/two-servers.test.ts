import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Model, startModel } from '../../../../src/testing/index.ts';
import { CliHome } from '../../../e2e/cli/process.ts';
import { endPrograms, startLoginApp } from '../../../e2e/example-programs.ts';
import { type ServedProcess, serveProcess } from '../../../e2e/http/support/served-process.ts';
import { NO_POSTGRES, postgresServer } from '../../../postgres/server.ts';
import { claudeEnvironment, findClaude, NOT_INSTALLED, packageFolder, userHome } from '../../support/claude.ts';

// The web app with its own login (examples/login.ts), with two servers and one PostgreSQL. Each server has its own process of the app.

const postgres = postgresServer();
const SHOP = ['--scopes', 'act-as,read,prompt', '--owners', 'shop:*'];

/** The settings of the real Claude with the stand-in model; if it is not installed, those of the scripted agent. */
function agentOf(model: Model, shared: string): object {
  if (findClaude() !== null)
    return { adapter: 'claude-sdk', package: packageFolder, env: claudeEnvironment(model, userHome(shared)) };
  console.log(`with the scripted agent: ${NOT_INSTALLED}`);
  return { adapter: 'scripted' };
}

test('after the first of two servers is killed, the agent at the second one has what the user told it at the first', async (context) => {
  if (NO_POSTGRES !== null) return context.skip(NO_POSTGRES);
  await using end = new AsyncDisposableStack();
  const shared = realpathSync(mkdtempSync(join(tmpdir(), 'throughline-place-')));
  end.defer(() => rmSync(shared, { recursive: true, force: true, maxRetries: 5 }));
  const model = end.adopt(await startModel(), (one) => one.close());
  const [first, second] = [new CliHome(), new CliHome()];
  end.defer(async () => void (await Promise.all([first.remove(), second.remove()])));
  end.defer(endPrograms); // deferred last, so that it runs first
  const agents = { agent: agentOf(model, shared) };
  const sandbox = { place: 'team', root: join(shared, 'sandboxes') };
  const store = postgres().url(await postgres().database());
  for (const home of [first, second]) home.configure({ store, agents, sandbox });

  const firstServer = await serveProcess(first);
  // A key that is made at the first server is valid at both.
  const key = (await first.ok('--as', 'shop', 'keys', 'create', 'the shop', ...SHOP)).trim();
  const startApp = ({ url }: ServedProcess) =>
    startLoginApp({ ...process.env, THROUGHLINE_SERVER: url, THROUGHLINE_TOKEN: key });
  const firstApp = await startApp(firstServer);
  const { cookie: ann } = await firstApp.login('ann', 'a heron at dawn');
  expect((await firstApp.say(ann, 'The codeword is amber.', 'r-1')).status).toBe(202);
  await firstApp.answerOf(ann, 1);
  const eventsAtFirst = await firstApp.events(ann, 1);
  // The second server starts only now. Otherwise it could have run the first turn, and would have its session.
  const secondServer = await serveProcess(second);
  const secondApp = await startApp(secondServer);
  firstServer.running.kill('SIGKILL');
  await firstServer.running.ended;

  expect((await secondApp.say(ann, 'Which codewords have you seen?', 'r-2')).status).toBe(202);
  expect(await secondApp.answerOf(ann, 2)).toContain('I have seen these codewords: amber.');
  expect(
    (await secondApp.say(ann, 'The codeword is amber.', 'r-1')).status,
    'the same request id is the same turn',
  ).toBe(202);
  expect(await secondApp.replies(ann)).toHaveLength(2);
  const eventsAtSecond = await secondApp.events(ann, 2);
  const lastEvent = eventsAtFirst.lastIndexOf('\n\n');
  expect(eventsAtSecond.slice(0, lastEvent), 'the same events under the same numbers').toBe(
    eventsAtFirst.slice(0, lastEvent),
  );
  const asAnn = secondServer.caller.with({ 'throughline-owner': 'shop:ann' });
  const { receipts } = await asAnn.ok('GET', '/conversations/support/sessions');
  expect(receipts.at(-1)).toMatchObject({ rung: 'resume', carried: expect.any(Number) });
  const { cookie: bob } = await secondApp.login('bob', 'a wren at noon');
  expect(JSON.stringify(await secondApp.read(bob))).not.toContain('amber');
  await secondApp.program.stop();
  secondServer.running.kill('SIGTERM');
  expect(await secondServer.running.ended).toMatchObject({ code: 0 });
});
