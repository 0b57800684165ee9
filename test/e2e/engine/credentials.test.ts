// Credentials of owners: they are in the environment of the owner's agents, and nowhere else.
import { randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Credentials, OpenOptions } from '../../../src/index.ts';
import { identityOf } from '../../contracts/liveness.ts';
import { allEvents, refusedWith } from '../support/conversations.ts';
import { Home } from '../support/home.ts';

const newKey = () => `sk-${randomUUID()}`;

/** Writes a key file for each owner, and returns options with which agents get the key of their owner. */
function writeKeys(home: Home, keys: Readonly<Record<string, string>>): OpenOptions {
  mkdirSync(join(home.path, 'keys'), { recursive: true });
  for (const [owner, key] of Object.entries(keys)) writeFileSync(join(home.path, 'keys', owner), `${key}\n`);
  const credentials = { AGENT_KEY: { file: join(home.path, 'keys', '{owner}') } };
  return home.with({ agents: { scripted: { adapter: 'scripted', credentials } } });
}

/** The environments of all agents that run. */
function environments(home: Home): string[] {
  const rows = home.query<{ process: string }>('SELECT process FROM sessions WHERE process IS NOT NULL');
  return rows.map(({ process }) => readFileSync(`/proc/${identityOf(JSON.parse(process)).pid}/environ`, 'utf8'));
}

test('owners with the same conversation key have agents of their own, each with its own key, and no key is stored', async () => {
  await using home = new Home();
  const keys = { ann: newKey(), 'app:b/../ob': newKey() };
  const tl = await home.open({}, writeKeys(home, { ann: keys.ann, 'app%3Ab%2F..%2Fob': keys['app:b/../ob'] }));
  for (const owner of Object.keys(keys)) await tl.as(owner).conversation('chat', { sandbox: 'shared' }).ask('Hello.');
  const running = environments(home);
  expect(running).toHaveLength(2);
  for (const key of Object.values(keys))
    expect(running.filter((env) => env.includes(`AGENT_KEY=${key}`))).toHaveLength(1);

  const shown = await Promise.all(
    Object.keys(keys).map(async (owner) => [
      await tl.as(owner).sandbox('shared').show(),
      await allEvents(tl.as(owner).engine, 'chat'),
      await tl.as(owner).engine.agents(),
    ]),
  );
  const files = readdirSync(home.path, { recursive: true, withFileTypes: true }).filter(
    (entry) => entry.isFile() && entry.parentPath !== join(home.path, 'keys'),
  );
  const texts = [
    JSON.stringify(shown),
    ...files.map(({ parentPath, name }) => readFileSync(join(parentPath, name), 'latin1')),
  ];
  expect(files.length).toBeGreaterThan(2);
  for (const key of Object.values(keys)) expect(texts.filter((text) => text.includes(key))).toEqual([]);
});

test('an owner without a key is refused with the reason, no agent is started for it, and a key that is added later is used', async () => {
  await using home = new Home();
  const [anns, eves] = [newKey(), newKey()];
  const tl = await home.open({}, writeKeys(home, { ann: anns }));
  await tl.as('ann').conversation('chat').ask('Hello.');
  const eve = tl.as('eve').conversation('chat');
  await refusedWith(
    'agent_unavailable',
    eve.ask('Hello.'),
    /no credentials for the owner "eve": .*keys\/eve does not exist/,
  );
  expect(environments(home)).toHaveLength(1);
  writeKeys(home, { eve: eves });
  expect((await eve.ask('Hello again.')).turn.state).toBe('completed');
  expect(environments(home).filter((env) => env.includes(eves))).toHaveLength(1);
});

test('credentials() is called with owner and agent for each session that is opened, and the refusal names what it threw', async () => {
  await using home = new Home();
  const requests: unknown[] = [];
  const [first, second] = [newKey(), newKey()];
  let lookUp: () => Credentials | null = () => ({ AGENT_KEY: first });
  const tl = await home.open(
    {},
    {
      credentials: async (request) => {
        requests.push(request);
        return lookUp();
      },
    },
  );
  const chat = tl.as('ann').conversation('chat');
  /** Asks in a new process: a warm session keeps the credentials that it was opened with. */
  const askInNewProcess = async (prompt: string) => {
    await chat.kill();
    return chat.ask(prompt);
  };
  expect((await chat.ask(`/say my key is ${first}`)).reply).toBe('my key is [AGENT_KEY]');
  lookUp = () => ({ AGENT_KEY: second });
  expect((await chat.ask(`/say ${first}`)).reply).toBe('[AGENT_KEY]');
  expect((await askInNewProcess(`/say ${first} and ${second}`)).reply).toBe(`${first} and [AGENT_KEY]`);
  expect(requests).toEqual([
    { owner: 'ann', agent: 'scripted' },
    { owner: 'ann', agent: 'scripted' },
  ]);
  for (const [wrong, why] of [
    [() => null, /credentials\(\) returned null/],
    [() => expect.unreachable('the vault is sealed'), /credentials\(\) failed: .*the vault is sealed/],
    [() => ({ AGENT_KEY: 7 }) as never, /did not return a text for AGENT_KEY/],
    [() => ({ '../x': 'y' }), /"..\/x", which is neither/],
    [() => ({ '~/.agent/key': first }), /the agent has no home of its own/],
  ] as const) {
    lookUp = wrong;
    await refusedWith('agent_unavailable', askInNewProcess('Hello.'), why);
  }
});
