import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { scriptedAgent } from '../../../src/agents/scripted/adapter.ts';
import { ask, TestSandboxes } from '../../contracts/agent-sandbox.ts';
import { codewordsIn, refusedWith, WHICH_CODEWORDS } from '../support/conversations.ts';
import { Home } from '../support/home.ts';

// Story 4: the requests of a user reach different servers. Every server found the sandbox of the user again, but not the conversation.

const WORDS = ['amber', 'birch', 'cobalt', 'dune'];

test('a naive server that reuses the sandbox and never resumes starts a fresh conversation with every request', async () => {
  const sandboxes = new TestSandboxes();
  try {
    const agent = scriptedAgent({ name: 'claude' });
    const sandbox = await sandboxes.sandbox(); // the same for every request, as in the story
    const answers: string[] = [];
    for (const word of WORDS.slice(0, 2)) {
      const query = await sandboxes.open(agent, sandbox); // the fault: no session is ever resumed
      answers.push((await ask(query, `The codeword is ${word}. ${WHICH_CODEWORDS}`)).reply);
      await query.close();
    }
    expect(answers.map(codewordsIn)).toEqual([['amber'], ['birch']]);
  } finally {
    await sandboxes.dispose();
  }
});

async function twoServers(home: Home, maxWarm = 0) {
  const [one, two] = await Promise.all([home.host({ maxWarm }), home.host({ maxWarm })]);
  return (i: number) => (i % 2 === 0 ? one : two);
}

test('every request resumes the session of its user, whichever server it reaches, and no user sees the words of another', async () => {
  await using home = new Home();
  const server = await twoServers(home);
  const seen = { alice: [] as string[], bob: [] as string[] };
  const sessions = { alice: new Set<string | null>(), bob: new Set<string | null>() };
  for (const [i, word] of WORDS.entries()) {
    for (const user of ['alice', 'bob'] as const) {
      const host = server(i + (user === 'bob' ? 1 : 0)).as(user);
      const prompt = `The codeword is ${user}-${word}. ${WHICH_CODEWORDS}`;
      const { reply, receipt, turn } = await host.calls.ask('chat', prompt, { sandbox: 'project' });
      seen[user].push(`${user}-${word}`);
      sessions[user].add(turn.sessionId);
      expect(codewordsIn(reply)).toEqual(seen[user]);
      expect(receipt).toMatchObject(
        i === 0
          ? { rung: 'new' }
          : { rung: 'resume', proof: 'proved', carried: i, dropped: 0, delivered: 0, tried: [] },
      );
    }
  }
  expect([sessions.alice.size, sessions.bob.size]).toEqual([1, 1]);
  expect([...sessions.alice]).not.toEqual([...sessions.bob]);
});

test('a user’s sandbox is the same directory on every server, and that of another user with the same name is another directory', async () => {
  await using home = new Home();
  const server = await twoServers(home);
  const directoryOf = async (i: number, user: string, key: string) => {
    const { reply } = await server(i).as(user).calls.ask(key, 'Which directory are you in?', { sandbox: 'project' });
    return reply.replace(/^I am in (.*)\.$/, '$1');
  };
  const alice = [
    await directoryOf(0, 'alice', 'chat'),
    await directoryOf(1, 'alice', 'chat'),
    await directoryOf(0, 'alice', 'other chat'),
  ];
  const bob = [await directoryOf(1, 'bob', 'chat'), await directoryOf(0, 'bob', 'chat')];
  expect(new Set(alice).size).toBe(1);
  expect(new Set(bob).size).toBe(1);
  expect(alice[0]).not.toBe(bob[0]);
  for (const path of [...alice, ...bob]) {
    expect(path.startsWith(`${home.sandboxes}/`)).toBe(true);
    expect(existsSync(path)).toBe(true);
  }
});

test('a user finds nothing of another user, by key, by id or by search', async () => {
  await using home = new Home();
  const server = await twoServers(home);
  const { turn } = await server(0).as('alice').calls.ask('chat', 'The codeword is amber.');
  const bob = server(1).as('bob').engine;
  for (const name of ['chat', turn.conversationId]) await refusedWith('not_found', bob.show(name));
  await refusedWith('not_found', bob.turn(turn.id));
  await refusedWith('not_found', bob.cancel(turn.id));
  await refusedWith('not_found', bob.submit(turn.conversationId, WHICH_CODEWORDS));
  expect(await bob.list()).toEqual([]);
  expect(await bob.search('amber')).toEqual([]);
  await refusedWith(
    'refused',
    server(1)
      .as('bob')
      .calls.ask('chat', WHICH_CODEWORDS, {}, { session: turn.sessionId ?? '' }),
  );
  expect(await server(1).as('alice').engine.search('amber')).toMatchObject([
    { conversationId: turn.conversationId, n: 1 },
  ]);
});

test('a server that keeps the session warm also answers the requests that reach the other server', async () => {
  await using home = new Home();
  const server = await twoServers(home, 8);
  for (const [i, word] of WORDS.entries()) {
    const { reply, receipt } = await server(i).calls.ask('chat', `The codeword is ${word}. ${WHICH_CODEWORDS}`);
    expect(codewordsIn(reply)).toEqual(WORDS.slice(0, i + 1));
    expect(receipt.rung).toBe(i === 0 ? 'new' : 'live');
  }
});

test('when the server that held the session is killed, the other server continues the conversation', async () => {
  await using home = new Home();
  const server = await twoServers(home, 8);
  await server(0).calls.ask('chat', 'The codeword is amber.');
  await server(0).kill();
  const { reply, receipt } = await server(1).calls.ask('chat', WHICH_CODEWORDS);
  expect(codewordsIn(reply)).toEqual(['amber']);
  expect(receipt).toMatchObject({ rung: 'resume', proof: 'proved' });
});
