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

// The web app with its own login (examples/login.ts) on two servers with one PostgreSQL, each server with a process of the app beside it.

const postgres = postgresServer();
const SHOP = ['--scopes', 'act-as,read,prompt', '--owners', 'shop:*'];

/** The real Claude on the stand-in model; where it is not installed, the scripted agent. */
function agentOf(model: Model, shared: string): object {
  if (findClaude() !== null)
    return { adapter: 'claude-sdk', package: packageFolder, env: claudeEnvironment(model, userHome(shared)) };
  console.log(`with the scripted agent: ${NOT_INSTALLED}`);
  return { adapter: 'scripted' };
}

test('the app on two servers: what a user told the agent at the first, which is killed, it knows at the second', async (context) => {
  if (NO_POSTGRES !== null) return context.skip(NO_POSTGRES);
  await using end = new AsyncDisposableStack();
  const shared = realpathSync(mkdtempSync(join(tmpdir(), 'throughline-place-')));
  end.defer(() => rmSync(shared, { recursive: true, force: true, maxRetries: 5 }));
  const model = end.adopt(await startModel(), (one) => one.close());
  const [first, second] = [new CliHome(), new CliHome()];
  end.defer(async () => void (await Promise.all([first.remove(), second.remove()])));
  end.defer(endPrograms); // first of all
  const agents = { agent: agentOf(model, shared) };
  const sandbox = { place: 'team', root: join(shared, 'sandboxes') };
  const store = postgres().url(await postgres().database());
  for (const home of [first, second]) home.configure({ store, agents, sandbox });

  const a = await serveProcess(first);
  // Made at the first server, it is valid at both.
  const key = (await first.ok('--as', 'shop', 'keys', 'create', 'the shop', ...SHOP)).trim();
  const app = ({ url }: ServedProcess) =>
    startLoginApp({ ...process.env, THROUGHLINE_SERVER: url, THROUGHLINE_TOKEN: key });
  const one = await app(a);
  const { cookie: ann } = await one.login('ann', 'a heron at dawn');
  expect((await one.say(ann, 'The codeword is amber.', 'r-1')).status).toBe(202);
  await one.answered(ann, 1);
  const seen = await one.events(ann, 1);
  // Only now: a server that was there could have run the first turn, and have its session.
  const b = await serveProcess(second);
  const two = await app(b);
  a.running.kill('SIGKILL');
  await a.running.ended;

  expect((await two.say(ann, 'Which codewords have you seen?', 'r-2')).status).toBe(202);
  expect(await two.answered(ann, 2)).toContain('I have seen these codewords: amber.');
  expect((await two.say(ann, 'The codeword is amber.', 'r-1')).status, 'sent again, and the same turn').toBe(202);
  expect(await two.replies(ann)).toHaveLength(2);
  const whole = await two.events(ann, 2);
  const upTo = seen.lastIndexOf('\n\n');
  expect(whole.slice(0, upTo), 'the same events under the same numbers').toBe(seen.slice(0, upTo));
  const asAnn = b.caller.with({ 'throughline-owner': 'shop:ann' });
  const { receipts } = await asAnn.ok('GET', '/conversations/support/sessions');
  expect(receipts.at(-1)).toMatchObject({ rung: 'resume', carried: expect.any(Number) });
  const { cookie: bob } = await two.login('bob', 'a wren at noon');
  expect(JSON.stringify(await two.read(bob))).not.toContain('amber');
  await two.program.stop();
  b.running.kill('SIGTERM');
  expect(await b.running.ended).toMatchObject({ code: 0 });
});
