import { expect, test } from 'vitest';
import { startSshd, whyNoSshd } from '../../contracts/sandbox/sshd.ts';
import { NO_POSTGRES, postgresServer } from '../../postgres/server.ts';
import { AGENTS } from '../cli/agents.ts';
import { CliHome, MANY_SLOTS } from '../cli/process.ts';
import { type ServedProcess, serveProcess } from '../http/support/served-process.ts';

const postgres = postgresServer();

/*
 * Two data homes share the database and a third machine, which both reach by ssh. The agents run on that machine. When one server is gone, the
 * other one resumes its session there, with its files.
 */
test('a session on a machine that two servers reach by ssh is resumed there by the one when the other is killed', async (context) => {
  const missing = NO_POSTGRES ?? whyNoSshd();
  if (missing !== null) return context.skip(missing);
  await using end = new AsyncDisposableStack();
  const { sandbox } = end.use(await startSshd());
  const store = postgres().url(await postgres().database());
  const servers = [0, 1].map(() => {
    const home = end.adopt(new CliHome(), (one) => one.remove());
    home.configure({ store, defaultAgent: 'scripted', agents: AGENTS, turns: MANY_SLOTS, sandbox });
    return home;
  });
  const [first, second] = servers as [CliHome, CliHome];
  const ask = async ({ caller }: ServedProcess, prompt: string) => {
    const { turn } = await caller.ok('POST', '/conversations/notes/turns', { prompt });
    return (await caller.finished(turn)).reply;
  };
  const a = await serveProcess(first);
  await ask(a, 'The codeword is osprey\n/tool work work.txt');
  const b = await serveProcess(second);
  expect(await ask(b, 'Which codewords have you seen?')).toContain('osprey');
  const last = async () => (await b.caller.ok('GET', '/conversations/notes/sessions')).receipts.at(-1);
  expect(await last(), 'run by the first server').toMatchObject({ rung: 'live' });
  a.running.kill('SIGKILL');
  await a.running.ended;
  expect(await ask(b, 'Which codewords have you seen?')).toContain('osprey');
  expect(await last()).toMatchObject({ rung: 'resume', proof: 'proved', carried: 2, dropped: 0 });
  expect(await last(), 'the files are there').not.toHaveProperty('filesLeft');
  expect((await b.caller.ok('GET', '/conversations/notes/files')).paths).toEqual(['work.txt']);
});
