// The engine embedded, over the unix socket and with `fetch`: the same calls give the same results and the same errors.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { inPages } from '../../../src/flow/pages.ts';
import type { Engine } from '../../../src/ports/engine.ts';
import type { UsageRow } from '../../../src/ports/store/usage.ts';
import { allEvents, ended, event, run } from '../support/conversations.ts';
import { Home } from '../support/home.ts';
import { reachBy, type Way } from '../support/way.ts';
import { comparable, outcome, withoutError } from './support/same.ts';

const WAYS: readonly Way[] = ['embedded', 'socket', 'tcp'];
const UNKNOWN = '0198c5d2-6e0b-7cc3-98c5-d26e0b7cc398';

interface Results {
  readonly answers: Record<string, unknown>;
  readonly errors: Record<string, unknown>;
}
const results = new Map<Way, Results>();

beforeAll(async () => {
  for (const way of WAYS) {
    reachBy(way);
    await using home = new Home({ a: {}, b: {} });
    const { engine } = await home.open();
    const answers = comparable(await callEverything(engine, home.path), home.path);
    const errors = comparable(await callInvalidly(engine, home.path), home.path);
    results.set(way, { answers, errors } as Results);
  }
});
afterAll(() => reachBy('embedded'));

test.each(['socket', 'tcp'] as const)('by %s every method returns the same as embedded', (way) => {
  expect(results.get(way)?.answers).toEqual(results.get('embedded')?.answers);
  expect(JSON.stringify(results.get('embedded')?.answers)).not.toContain('undefined');
});

test.each(['socket', 'tcp'] as const)('by %s every error has the same code, message and hint as embedded', (way) => {
  expect(results.get(way)?.errors).toEqual(results.get('embedded')?.errors);
  expect(withoutError(results.get('embedded')?.errors ?? {})).toEqual([]);
});

/** Calls every method, one after the other, and returns all results. */
async function callEverything(engine: Engine, home: string) {
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
  const answered = await engine.answer(payload.permissionId, 'allow', { from: 'program' });
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
    answered: { ...answered, answeredBy: '' }, // over HTTP it also names the token
    renamed: await engine.rename(key, 'Another title'),
    arranged: await engine.arrange(key, { pinned: true, putAway: true }),
    putAway: await engine.list({ putAway: true, pinned: true }),
    countPutAway: await engine.countPutAway(),
    dotted: await engine.conversation('...'),
    answer: await engine.answerOf(second.turn.id),
    turn: await engine.turn(hanging.turn.id),
    pending: await engine.pending(),
    delivered: await engine.delivered(first.turn.id),
    noneLeft: await engine.pending({ after: first.turn.id }),
    told: await engine.told(first.turn.id), // only of the first turn: the transcript block of a later one has a random number
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

/** Makes invalid calls, and returns their results by what is wrong. */
async function callInvalidly(engine: Engine, home: string) {
  const { turn } = await engine.submit('fork', '/hang');
  const done = (await run(engine, 'imported', 'Hello.', { requestId: 'taken' })).turn;
  const wrong: Record<string, () => unknown> = {
    'an unknown conversation': () => engine.conversation('nope'),
    'an empty name': () => engine.conversation(''),
    'an unpaired surrogate': () => engine.summary('\ud800'),
    'a name too long': () => engine.show('x'.repeat(600)),
    'a name of dots': () => engine.conversation('.'),
    'a key of dots': () => engine.ensure({ key: '..' }),
    'a prompt to dots': () => engine.submit('.', 'Hello.'),
    'a prompt to dots that creates nothing': () => engine.submit('..', 'Hello.', { create: false }),
    'a key with an invisible character': () => engine.ensure({ key: 'a\u200b' }),
    'a key that looks like another': () => engine.fork('imported', { key: 'Gespra\u0308ch' }),
    'a sandbox of dots': () => engine.ensure({ sandbox: '.' }),
    'an owner of dots': () => engine.as('..'),
    'an unknown state': () => engine.list({ state: 'busy' as never }),
    'an invalid time': () => engine.list({ since: 'yesterday' }),
    'a session and a state': () => engine.list({ session: 's', state: 'asks' }),
    'turns before and after': () => engine.turns('fork', { before: 2, after: 1 }),
    'turns before number zero': () => engine.turns('fork', { before: 0 }),
    'events of an unknown turn': () => engine.events('fork', { turn: 99 }),
    'events before a number that does not exist': () => engine.events('...', { before: 99_999 }),
    'events of another log': () => engine.events('fork', { log: 'x' }),
    'changes without a repository': () => engine.changes('imported'),
    'files of an unknown conversation': () => engine.files('nope'),
    'a directory outside of those that may be chosen': () => engine.directories({ path: '/proc' }),
    'a relative directory to choose from': () => engine.directories({ path: 'src' }),
    'hidden directories that are neither shown nor not': () => engine.directories({ hidden: 1 as never }),
    'an answer from nowhere': () => engine.answer('p', 'allow', { from: 'nowhere' as never }),
    'files that match a number': () => engine.files('repository', { match: 5 as never }),
    'changes of an unknown conversation': () => engine.changes('nope'),
    'an unknown turn': () => engine.turn('nope'),
    'a turn of dots': () => engine.turn('..'),
    'what an unknown turn was told': () => engine.told(UNKNOWN),
    'what an unknown attempt was told': () => engine.told(done.id, { attempt: 9 }),
    'what attempt zero was told': () => engine.told(done.id, { attempt: 0 }),
    'what an imported turn was told': async () => engine.told((await engine.turns('imported'))[0]?.id ?? ''),
    'an unknown turn to deliver': () => engine.delivered(UNKNOWN),
    'a running turn to deliver': async () =>
      engine.delivered((await engine.submit('fork', '/hang', { deliverTo: 'x' })).turn.id),
    'a turn that need not be delivered': () => engine.delivered(done.id),
    'an empty place to deliver to': () => engine.submit('fork', 'Hello.', { deliverTo: '' }),
    'pending after an unknown turn': () => engine.pending({ after: UNKNOWN }),
    'an unknown turn to cancel': () => engine.cancel(UNKNOWN),
    'an unknown turn to retry': () => engine.retry(UNKNOWN),
    'a running turn to retry': () => engine.retry(turn.id),
    'the answer of an unknown turn': () => engine.answerOf(UNKNOWN),
    'an unknown permission': () => engine.answer(UNKNOWN, 'allow'),
    'permissions of an unknown conversation': () => engine.permissions({ conversation: 'nope' }),
    'a blank prompt': () => engine.submit('fork', ' '),
    'a prompt of no blocks': () => engine.submit('fork', []),
    'an unknown block': () => engine.submit('fork', [{ type: 'song' }] as never),
    'a prompt to a new key without an agent': () => engine.submit('nope', 'Hello.'),
    'an unknown agent': () => engine.submit('fork', 'Hello.', { agent: 'nobody' }),
    'another prompt under the same id': () => engine.submit('imported', 'Other.', { requestId: 'taken' }),
    'a blank request id': () => engine.submit('fork', 'Hello.', { requestId: ' ' }),
    'a session and the policy "off"': () =>
      engine.submit('fork', 'Hello.', { session: 's', restore: { policy: 'off' } }),
    'an unknown policy': () => engine.submit('fork', 'Hello.', { restore: { policy: 'never' as 'off' } }),
    'a fork of a turn that does not exist': () => engine.fork('imported', { turn: 99 }),
    'a fork under a key that is taken': () => engine.fork('imported', { key: 'fork' }),
    'an import of nothing': () => engine.import(undefined),
    'an import of something else': () => engine.import({ format: 'x' }),
    'a limit of zero': () => engine.list({ limit: 0 }),
    'a limit of zero for usage': () => engine.usage({ limit: 0 }),
    'an invalid day': () => engine.usage({ since: '2026-02-30' }),
    'a page of usage before an invalid day': () => engine.usage({ before: { day: 'today', agent: 'a' } }),
    'turns after a negative number': () => engine.turns('fork', { after: -1 }),
    'records after a negative number': () => engine.records('fork', { after: -1 }),
    'records of an unknown conversation': () => engine.records('nope'),
    'restores of an unknown conversation': () => engine.restores('nope'),
    'an empty search': () => engine.search(''),
    'a blank title': () => engine.rename('fork', ' '),
    'no change': () => engine.arrange('fork', {}),
    'a wrong change': () => engine.arrange('fork', { pinned: 'yes' as unknown as boolean }),
    'a wrong filter': () => engine.list({ putAway: 1 as unknown as boolean }),
    'a session and a filter': () => engine.list({ session: 's', putAway: false }),
    'a key with a line break': () => engine.ensure({ key: 'a\nb' }),
    'another directory': () => engine.ensure({ key: 'fork', cwd: home }),
    'a directory that does not exist': () => engine.ensure({ cwd: `${home}/nowhere` }),
    'an unknown agent of a conversation': () => engine.ensure({ agent: 'nobody' }),
    'a warm-up of an unknown agent': () => engine.warm('fork', { agent: 'nobody' }),
    'the chain of an unknown conversation': () => engine.verify('nope'),
    'events of an unknown conversation': () => engine.follow('nope')[Symbol.asyncIterator]().next(),
    'events after a negative number': () => engine.follow('fork', { after: -1 })[Symbol.asyncIterator]().next(),
    'a blank owner': () => engine.as(' '),
  };
  const outcomes: Record<string, unknown> = {};
  for (const [name, call] of Object.entries(wrong)) outcomes[name] = await outcome(call);
  expect(done.state).toBe('completed');
  await engine.cancel(turn.id);
  await ended(engine, turn);
  return outcomes;
}
