// Embedded, by unix socket and by fetch: the same calls, the same answers, the same errors.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { inPages } from '../../../src/flow/pages.ts';
import type { Engine } from '../../../src/ports/engine.ts';
import type { UsageRow } from '../../../src/ports/store/usage.ts';
import { allEvents, ended, event, run } from '../support/conversations.ts';
import { Home } from '../support/home.ts';
import { reachBy, type Way } from '../support/served.ts';
import { comparable, outcome } from './support/same.ts';

const WAYS: readonly Way[] = ['embedded', 'socket', 'tcp'];
const UNKNOWN = '0198c5d2-6e0b-7cc3-98c5-d26e0b7cc398';

interface Told {
  readonly answers: Record<string, unknown>;
  readonly errors: Record<string, unknown>;
}
const told = new Map<Way, Told>();

beforeAll(async () => {
  for (const way of WAYS) {
    reachBy(way);
    await using home = new Home({ a: {}, b: {} });
    const { engine } = await home.open();
    const answers = comparable(await story(engine, home.path), home.path);
    const errors = comparable(await faults(engine, home.path), home.path);
    told.set(way, { answers, errors } as Told);
  }
});

test.each(['socket', 'tcp'] as const)('by %s every verb answers as it does embedded', (way) => {
  expect(told.get(way)?.answers).toEqual(told.get('embedded')?.answers);
  expect(JSON.stringify(told.get('embedded')?.answers)).not.toContain('undefined');
});

test.each(['socket', 'tcp'] as const)(
  'by %s every fault has the code, the words and the hint that it has embedded',
  (way) => {
    expect(told.get(way)?.errors).toEqual(told.get('embedded')?.errors);
    expect(Object.values(told.get('embedded')?.errors ?? {})).not.toContainEqual({ value: expect.anything() });
  },
);

/** Something of everything, one after the other. */
async function story(engine: Engine, home: string) {
  const made = await engine.ensure({ key: 'a b/c?&%2F', agent: 'a', title: 'Größe 🦆', restore: { policy: 'auto' } });
  const key = 'a b/c?&%2F';
  const dots = await engine.ensure({ key: '...' });
  const first = await engine.submit(key, 'The codeword is osprey.\n/tool write out.log', {
    requestId: 'r 1',
    deliverTo: '#birds & more',
  });
  await ended(engine, first.turn);
  const again = await engine.submit(key, 'The codeword is osprey.\n/tool write out.log', {
    requestId: 'r 1',
    deliverTo: '#birds & more',
  });
  const blocks = [{ type: 'text', text: 'Which codewords have you seen?', _meta: { kept: [1, null] } }] as const;
  const second = await engine.submit(key, blocks, { requestId: 'r2', agent: 'b' });
  await ended(engine, second.turn);
  const asking = await engine.submit(key, '/ask May I?\n/say done', { requestId: 'r3', permissions: 'ask' });
  const { payload } = await event(engine, key, 'permission.asked', { turn: asking.turn.id });
  const open = await engine.permissions({ conversation: key, open: true });
  const answered = await engine.answer(payload.permissionId, 'allow');
  await ended(engine, asking.turn);
  const hanging = await engine.submit(key, '/say begun\n/hang', { requestId: 'r4' });
  await event(engine, key, 'turn.update', { turn: hanging.turn.id });
  await engine.cancel(hanging.turn.id);
  await ended(engine, hanging.turn);
  const retried = await engine.retry(first.turn.id, { requestId: 'r5' });
  await ended(engine, retried.turn);
  const warmed = await engine.warm(key, { agent: 'b' });
  const exported = await engine.export(key);
  const other = engine.as('Zoë');
  const others = await other.ensure({ key });
  const repository = join(home, 'repository');
  execFileSync('git', ['init', '--quiet', repository], { stdio: 'ignore' });
  writeFileSync(join(repository, 'new.txt'), 'one\n');
  await engine.ensure({ key: 'repository', cwd: repository });
  const page = await engine.list({ limit: 1 });
  const last = page.at(-1);
  return {
    ...{ owner: engine.owner, made, dots, first, again, second, open, retried, exported, warmed, others },
    answered: { ...answered, answeredBy: '' }, // over HTTP also by which hand
    renamed: await engine.rename(key, 'Another title'),
    dotted: await engine.conversation('...'),
    answer: await engine.answerOf(second.turn.id),
    turn: await engine.turn(hanging.turn.id),
    pending: await engine.pending(),
    delivered: await engine.delivered(first.turn.id),
    noneLeft: await engine.pending({ after: first.turn.id }),
    told: await engine.told(first.turn.id), // the block of another one has a random number
    listed: await engine.list({ agent: 'b', state: ['idle', 'asks'], since: 0, until: new Date('9999-12-31') }),
    listedNone: await engine.list({ state: 'failed', until: '2026-01-01' }),
    turns: await engine.turns(key, { after: 1, limit: 2 }),
    lastTurns: await engine.turns(key, { before: 'end', limit: 2 }),
    lastRecords: await engine.records(key, { before: 3, limit: 1 }),
    ofTurn: await engine.events(key, { turn: 1, before: 6 }),
    records: await engine.records(key, { after: 1, limit: 2 }),
    events: (await allEvents(engine, key)).filter(({ kind }) => !/^permission|cancel_requested/.test(kind)),
    fork: await engine.fork(key, { turn: 2, key: 'fork' }),
    imported: await engine.import(exported, { key: 'imported', cwd: home }),
    ids: (await engine.list()).map(({ key }) => key).toSorted(),
    page: page.length + (last === undefined ? 0 : (await engine.list({ before: last })).length),
    view: await engine.show(key),
    summary: { ...(await engine.summary(key)), lock: null },
    sessions: await engine.sessions(key),
    receipts: await engine.receipts(key),
    restores: [await engine.restores(key), await engine.restores(key, { before: 'end', limit: 1 })],
    search: await engine.search('osprey', { limit: 3 }),
    usage: await engine.usage(),
    usagePages: await Array.fromAsync(
      inPages<UsageRow>((last) => engine.usage({ limit: 1, ...(last && { before: last }) })),
    ),
    none: await engine.usage({ since: '2999-01-01' }),
    whole: (await engine.verify(key)).broken,
    agents: await engine.agents(),
    foreign: (await other.list()).length,
    changes: await engine.changes('repository'),
    files: await engine.files('repository', { match: 'e' }),
    killed: await engine.kill(key),
    killedAgain: await engine.kill(key),
  };
}

/** Everything that can be asked wrongly. */
async function faults(engine: Engine, home: string) {
  const { turn } = await engine.submit('fork', '/hang');
  const done = (await run(engine, 'imported', 'Hello.', { requestId: 'taken' })).turn;
  const wrong: Record<string, () => unknown> = {
    'no conversation': () => engine.conversation('nope'),
    'an empty name': () => engine.conversation(''),
    'half a character': () => engine.summary('\ud800'),
    'a name too long': () => engine.show('x'.repeat(600)),
    'a name of dots': () => engine.conversation('.'),
    'a key of dots': () => engine.ensure({ key: '..' }),
    'a prompt to dots': () => engine.submit('.', 'Hello.'),
    'a prompt to dots that creates nothing': () => engine.submit('..', 'Hello.', { create: false }),
    'a key that cannot be seen': () => engine.ensure({ key: 'a\u200b' }),
    'a key that looks like another': () => engine.fork('imported', { key: 'Gespra\u0308ch' }),
    'a sandbox of dots': () => engine.ensure({ sandbox: '.' }),
    'an owner of dots': () => engine.as('..'),
    'a state that is none': () => engine.list({ state: 'busy' as never }),
    'a time that is none': () => engine.list({ since: 'yesterday' }),
    'a session and a state': () => engine.list({ session: 's', state: 'asks' }),
    'turns before and after': () => engine.turns('fork', { before: 2, after: 1 }),
    'turns before nothing': () => engine.turns('fork', { before: 0 }),
    'events of no turn': () => engine.events('fork', { turn: 99 }),
    'events before none': () => engine.events('...', { before: 99_999 }),
    'events of another log': () => engine.events('fork', { log: 'x' }),
    'changes without a repository': () => engine.changes('imported'),
    'files of nothing': () => engine.files('nope'),
    'files without a text': () => engine.files('repository', { match: 5 as never }),
    'changes of nothing': () => engine.changes('nope'),
    'no turn': () => engine.turn('nope'),
    'an empty turn': () => engine.turn('..'),
    'nothing told to no turn': () => engine.told(UNKNOWN),
    'nothing told of an attempt': () => engine.told(done.id, { attempt: 9 }),
    'an attempt that is none': () => engine.told(done.id, { attempt: 0 }),
    'nothing told elsewhere': async () => engine.told((await engine.turns('imported'))[0]?.id ?? ''),
    'no turn to deliver': () => engine.delivered(UNKNOWN),
    'a turn that runs, delivered': async () =>
      engine.delivered((await engine.submit('fork', '/hang', { deliverTo: 'x' })).turn.id),
    'a turn that need not be delivered': () => engine.delivered(done.id),
    'nowhere to deliver to': () => engine.submit('fork', 'Hello.', { deliverTo: '' }),
    'pending after nothing': () => engine.pending({ after: UNKNOWN }),
    'no turn to cancel': () => engine.cancel(UNKNOWN),
    'no turn to try again': () => engine.retry(UNKNOWN),
    'a turn that runs, tried again': () => engine.retry(turn.id),
    'no answer yet': () => engine.answerOf(UNKNOWN),
    'no permission': () => engine.answer(UNKNOWN, 'allow'),
    'permissions of nothing': () => engine.permissions({ conversation: 'nope' }),
    'an empty prompt': () => engine.submit('fork', ' '),
    'a prompt of no blocks': () => engine.submit('fork', []),
    'a strange block': () => engine.submit('fork', [{ type: 'song' }] as never),
    'a prompt to nobody': () => engine.submit('nope', 'Hello.'),
    'an unknown agent': () => engine.submit('fork', 'Hello.', { agent: 'nobody' }),
    'another prompt under the same id': () => engine.submit('imported', 'Other.', { requestId: 'taken' }),
    'an empty request id': () => engine.submit('fork', 'Hello.', { requestId: ' ' }),
    'a session and no context': () => engine.submit('fork', 'Hello.', { session: 's', restore: { policy: 'off' } }),
    'a strange policy': () => engine.submit('fork', 'Hello.', { restore: { policy: 'never' as 'off' } }),
    'a fork of a turn to come': () => engine.fork('imported', { turn: 99 }),
    'a fork under a key that is taken': () => engine.fork('imported', { key: 'fork' }),
    'an import of nothing': () => engine.import(undefined),
    'an import of something else': () => engine.import({ format: 'x' }),
    'no limit': () => engine.list({ limit: 0 }),
    'no limit of usage': () => engine.usage({ limit: 0 }),
    'a day that is none': () => engine.usage({ since: '2026-02-30' }),
    'a page of usage before what': () => engine.usage({ before: { day: 'today', agent: 'a' } }),
    'a number before the first': () => engine.turns('fork', { after: -1 }),
    'records before the first': () => engine.records('fork', { after: -1 }),
    'records of nothing': () => engine.records('nope'),
    'restores of nothing': () => engine.restores('nope'),
    'a search for nothing': () => engine.search(''),
    'an empty title': () => engine.rename('fork', ' '),
    'a key with a line break': () => engine.ensure({ key: 'a\nb' }),
    'another directory': () => engine.ensure({ key: 'fork', cwd: home }),
    'a directory that is not there': () => engine.ensure({ cwd: `${home}/nowhere` }),
    'an agent that is not there': () => engine.ensure({ agent: 'nobody' }),
    'a warm-up of nobody': () => engine.warm('fork', { agent: 'nobody' }),
    'a chain of nothing': () => engine.verify('nope'),
    'events of nothing': () => engine.follow('nope')[Symbol.asyncIterator]().next(),
    'events before the first': () => engine.follow('fork', { after: -1 })[Symbol.asyncIterator]().next(),
    'no owner': () => engine.as(' '),
  };
  const outcomes: Record<string, unknown> = {};
  for (const [name, call] of Object.entries(wrong)) outcomes[name] = await outcome(call);
  expect(done.state).toBe('completed');
  await engine.cancel(turn.id);
  await ended(engine, turn);
  return outcomes;
}
