import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chownSync,
  existsSync,
  lchownSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { CliHome } from './process.ts';

/** A home with one conversation, "story", that has had a handoff, a lost session and a failed turn. The commands read it. */
const home = new CliHome();
afterAll(() => home.remove());

beforeAll(async () => {
  await home.here.ok('send', 'story', 'The codeword is osprey', '--title', 'A story', '--request-id', 'q1');
  await home.here.ok('send', 'story', 'The codeword is heron', '--agent', 'forgetful');
  await home.here.run('send', 'story', '/fail agent_failed');
  await home.here.ok('send', 'story', 'Which codewords have you seen?');
});

describe('told', () => {
  test('prints word for word what a turn was told, with its hash: by id, by number, or for the last turn', async () => {
    const { turns } = await home.show('story');
    const [last] = await home.here.lines('told', 'story');
    expect(last).toMatchObject({ turnId: turns[3].id, rung: 'transcript', sessionId: turns[3].sessionId, attempt: 1 });
    expect(last.parts).toMatchObject([{ as: 'prompt', turn: 4, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) }]);
    expect(last.parts[0].content.at(-1)).toEqual(turns[3].prompt[0]);
    expect(await home.here.lines('told', turns[3].id)).toEqual([last]);
    expect(await home.here.lines('told', 'story', '4', '--attempt', '1')).toEqual([last]);
    const { stdout, stderr } = await home.here.run('told', 'story', '2');
    expect(stdout).toMatch(/^<conversation-record [0-9a-f]+>\n.*The codeword is osprey.*\nThe codeword is heron\n$/s);
    expect(stderr).toContain(`told to session ${turns[1].sessionId} by transcript`);
    expect(stderr).toMatch(/prompt of turn 2, sha256 [0-9a-f]{64}\n/);
    expect(await home.here.run('told', 'story', '9')).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('no turn 9'),
    });
    expect(await home.here.run('told', 'nothing')).toMatchObject({ code: 4 });
    expect(await home.here.run('told', 'story', 'x')).toMatchObject({ code: 2 });
  });
});

test('changes lists what differs from the last commit, and fails outside a git repository', async () => {
  const repository = join(home.path, 'repository');
  execFileSync('git', ['init', '--quiet', repository], { stdio: 'ignore' });
  await home.here.ok('send', 'repository', 'Hello.', '--cwd', repository);
  expect(await home.here.run('changes', 'repository')).toMatchObject({
    ...{ code: 0, stdout: '', stderr: expect.stringContaining('Nothing has changed') },
  });
  writeFileSync(join(repository, 'a\u001b[2Jb.txt'), 'one\u001b[31m\ntwo\n');
  expect(await home.here.ok('changes', 'repository')).toBe('"a\\033[2Jb.txt"  untracked, +2 -0\n');
  expect(await home.here.ok('files', 'repository', 'GIT')).toBe('.git/\n');
  expect(await home.here.lines('files', 'repository', 'nothing')).toEqual([{ paths: [], more: false }]);
  const patch = await home.here.ok('changes', 'repository', '--patch');
  expect([patch.includes('+two\n'), patch.includes('\u001b')]).toEqual([true, false]);
  expect(await home.here.lines('changes', 'repository')).toMatchObject([
    { head: null, files: [{ added: 2 }], more: 0 },
  ]);
  expect(await home.here.run('changes', 'story')).toMatchObject({
    ...{ code: 4, stdout: '', stderr: expect.stringContaining('not in a git repository') },
  });
});

test('pending lists answers until they are confirmed as delivered', async () => {
  expect(await home.here.run('pending')).toMatchObject({
    code: 0,
    stdout: '',
    stderr: 'No answer waits to be delivered.\n',
  });
  await home.here.ok('send', 'bot', 'The codeword is wren', '--deliver-to', 'mail:ann', '--request-id', 'mail-1');
  await home.here.ok('send', 'bot', 'The codeword is wren', '--deliver-to', 'mail:ann', '--request-id', 'mail-1');
  const [answer, ...others] = await home.here.lines('pending');
  expect(answer).toMatchObject({
    turn: { state: 'completed', requestId: 'mail-1', options: { deliverTo: 'mail:ann' } },
  });
  expect(others).toEqual([]);
  expect(await home.here.ok('pending')).toMatch(
    /^[0-9a-f-]{36} {2}completed, for mail:ann, .* {2}The codeword is wren\n$/,
  );
  expect(await home.here.ok('pending', '--delivered', answer.turn.id)).toBe('turn 1 was delivered to mail:ann\n');
  expect(await home.here.lines('pending', '--delivered', answer.turn.id)).toMatchObject([{ delivered: true }]);
  expect(await home.here.lines('pending')).toEqual([]);
  expect(await home.here.run('pending', '--delivered', 'nothing')).toMatchObject({ code: 4 });
  await home.here.ok('erase', 'bot', '--yes');
});

describe('show', () => {
  test('prints the whole conversation as one object with --json', async () => {
    const { conversation, turns, sessions, receipts } = await home.show('story');
    expect(conversation).toMatchObject({ key: 'story', title: 'A story', owner: 'local', head: 4 });
    expect(turns).toMatchObject([
      { n: 1, requestId: 'q1', state: 'completed', agent: 'scripted', reply: 'Noted: The codeword is osprey' },
      { n: 2, requestId: null, state: 'completed', agent: 'forgetful' },
      { n: 3, state: 'failed', agent: 'forgetful', reply: '', failure: { code: 'agent_failed' } },
      { n: 4, state: 'completed', reply: 'I have seen these codewords: osprey, heron.' },
    ]);
    for (const turn of turns) {
      expect(turn).toMatchObject({
        id: expect.any(String),
        sessionId: expect.any(String),
        usage: { modelCalls: expect.any(Number) },
      });
      expect(turn.prompt).toEqual([{ type: 'text', text: turn.promptText }]);
    }
    expect(sessions).toMatchObject([
      { id: turns[0].sessionId, agent: 'scripted', origin: 'new', parent: null, watermark: 1, state: 'dormant' },
      { id: turns[1].sessionId, agent: 'forgetful', origin: 'new', state: 'lost' },
      { id: turns[2].sessionId, agent: 'forgetful' },
      { id: turns[3].sessionId, agent: 'forgetful', watermark: 4 },
    ]);
    expect(receipts).toMatchObject([
      { turn: 1, rung: 'new', sessionId: turns[0].sessionId, carried: 0, dropped: 0, modelCalls: 0, tried: [] },
      { turn: 2, rung: 'transcript', carried: 1, dropped: 0, proof: 'counted' },
      { turn: 3, rung: 'transcript', carried: 2 },
      { turn: 4, rung: 'transcript', carried: 3, dropped: 0, sessionId: turns[3].sessionId },
    ]);
  });

  test('shows which agent answered, and every seam between sessions with its receipt', async () => {
    const text = await home.here.ok('show', 'story');
    const { turns } = await home.show('story');
    expect(text).toMatch(/^story {2}A story\n/);
    const seams = text.split('\n').filter((line) => line.startsWith('─── '));
    expect(seams).toHaveLength(4);
    expect(seams[1]).toContain(`session ${turns[1].sessionId}: restored by transcript: 1 turn carried, 0 dropped`);
    expect(text).toMatch(/turn 2 {2}forgetful, completed, .*\n> The codeword is heron\nNoted: The codeword is heron\n/);
    expect(text).toContain('agent_failed: failed as asked');
  });

  test('shows no seam where a session continues', async () => {
    await home.here.ok('send', 'seamless', 'one');
    await home.here.ok('send', 'seamless', 'two');
    const text = await home.here.ok('show', 'seamless');
    expect(text.match(/─── /g)).toHaveLength(1);
  });

  test('shows only the last turns and their receipts with --last', async () => {
    const whole = await home.show('story');
    const [last] = await home.here.lines('show', 'story', '--last', '2');
    expect(last).toEqual({ ...whole, turns: whole.turns.slice(-2), receipts: whole.receipts.slice(-2) });
    expect(await home.here.lines('show', 'story', '--last', '99')).toEqual([whole]);
    expect(await home.here.ok('show', 'story', '--last', '1')).not.toContain('turn 3');
  });

  test('finds a conversation by its id as well', async () => {
    const { conversation } = await home.show('story');
    expect((await home.show(conversation.id)).conversation).toEqual(conversation);
  });
});

test('show has one line for a tool, at its place in the answer, and its output only with --verbose', async () => {
  writeFileSync(join(home.path, 'attached.txt'), 'one\ntwo\n');
  const prompt = '/say before\n/tool write show.log\n/say after';
  await home.ok('send', 'with-tools', prompt, '--file', 'attached.txt');
  const shown = await home.here.ok('show', 'with-tools');
  expect(shown).toMatch(/before\n {2}edit: write show\.log, \d+(\.\d)? m?s\nafter\n$/);
  expect(shown).toMatch(/^> \[file file:\/\/.*attached\.txt, 2 lines\]$/m);
  const verbose = await home.here.ok('show', 'with-tools', '--verbose');
  expect(verbose).toContain('    | appended a line to show.log\nafter');
  expect(verbose).toContain('> one\n> two\n');
  const [turn] = (await home.show('with-tools')).turns;
  expect(turn.tools).toMatchObject([{ kind: 'edit', target: 'show.log', status: 'completed', ms: expect.any(Number) }]);
});

test('list prints one line per conversation, the most recent first, up to the limit', async () => {
  const all = await home.here.lines('list');
  expect(all.map((one) => one.key)).toEqual(expect.arrayContaining(['story', 'seamless']));
  expect(all.map((one) => one.updatedAt)).toEqual(all.map((one) => one.updatedAt).toSorted((a, b) => b - a));
  expect(await home.here.lines('list', '--limit', '1')).toEqual(all.slice(0, 1));
  expect(await home.here.ok('list')).toMatch(/^story {2}4 turns, .* {2}A story$/m);
  expect(await home.here.lines('list', '--state', 'asks,idle')).toEqual(all.filter(({ state }) => state === 'idle'));
  const ofAgent = await home.here.lines('list', '--agent', 'forgetful', '--since', '2026-01-31', '--limit', '9');
  expect(ofAgent).toEqual(all.filter(({ lastAgent }) => lastAgent === 'forgetful'));
  expect(ofAgent.map(({ key }) => key)).toContain('story');
  expect((await home.here.run('list', '--until', '2026-01-31')).stderr).toBe('No conversation matches.\n');
  expect(await home.here.run('list', '--state', 'busy')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('States: asks,'),
  });
  const nobody = await home.here.run('list', '--as', 'nobody');
  expect(nobody).toMatchObject({ code: 0, stdout: '' });
  expect(nobody.stderr).toContain('no conversations yet');
});

test('summary prints the numbers of a conversation', async () => {
  const [summary] = await home.here.lines('summary', 'story');
  expect(summary).toMatchObject({
    key: 'story',
    contexts: 3,
    first: { n: 1 },
    last: { n: 4 },
    sessions: 4,
    changes: 3,
    open: 0,
    lock: null,
    usage: { modelCalls: 3 },
  });
  expect(await home.here.ok('summary', 'story')).toMatch(
    /3 turns completed, from turn 1 .*; 0 open\nsessions: 4, changes between them: 3\n/,
  );
});

test('search finds turns and titles that contain all of the words', async () => {
  const hits = await home.here.lines('search', 'codeword', 'heron');
  expect(hits.map((hit) => [hit.key, hit.n])).toEqual(expect.arrayContaining([['story', 2]]));
  expect(hits.every((hit) => hit.snippet.includes('heron'))).toBe(true);
  expect(await home.here.ok('search', 'heron')).toMatch(/^story turn \d: .*heron/m);
  await home.here.ok('rename', 'story', 'The walrus chapter');
  expect(await home.here.ok('search', 'chapter', 'walr')).toBe('story title: The walrus chapter\n');
  expect(await home.here.run('search', 'heron', 'walrus')).toMatchObject({
    code: 0,
    stdout: '',
    stderr: 'No turn and no title has all of these words.\n',
  });
});

test('sessions prints the lineage, oldest first, with the ids of the agents', async () => {
  const sessions = await home.here.lines('sessions', 'story');
  const { turns, sessions: shown } = await home.show('story');
  expect(sessions.map((one) => one.id)).toEqual(turns.map((turn: { sessionId: string }) => turn.sessionId));
  expect(sessions).toEqual(shown);
  expect(sessions[0]).not.toHaveProperty('ref');
  expect(sessions[0]).not.toHaveProperty('memo');
  expect(await home.here.ok('sessions', 'story')).toContain(
    `${turns[0].sessionId}  scripted, new, dormant, has the turns up to 1`,
  );
});

test('list --session finds the conversation that has used a session', async () => {
  const { turns } = await home.show('story');
  const [found, ...more] = await home.here.lines('list', '--session', turns[0].sessionId);
  expect([found.key, more]).toEqual(['story', []]);
  expect(await home.here.ok('list', '--session', turns[0].sessionId)).toMatch(/^story {2}/);
  expect((await home.here.run('list', '--session', 'nothing')).stderr).toBe('No conversation has used this session.\n');
});

test('the JSON of turns has no internal fields of sessions and processes', async () => {
  const { turns } = await home.show('story');
  const events = await home.here.lines('follow', 'story', '--until-idle');
  const sent = [
    ...turns.map((turn: { sent: object }) => turn.sent),
    ...events.filter(({ kind }) => kind === 'turn.sent').map(({ payload }) => payload.sent),
    (await home.here.lines('send', 'story-2', 'Hello.')).at(-1).turn.sent,
    (await home.here.lines('cancel', turns[0].id))[0].sent,
  ];
  expect(sent).toHaveLength(10);
  for (const one of sent) {
    expect(one).toMatchObject({ rung: expect.any(String), at: expect.any(Number) });
    for (const internal of ['session', 'process', 'position', 'prompt']) expect(one).not.toHaveProperty(internal);
  }
});

describe('follow', () => {
  test('prints every event after a number, without gaps', async () => {
    const events = await home.here.lines('follow', 'story', '--until-idle');
    expect(events.map((event) => event.seq)).toEqual(events.map((_, index) => index + 1));
    expect(await home.here.lines('follow', 'story', '--until-idle', '--after', '10')).toEqual(events.slice(10));
    expect(await home.here.lines('follow', 'story', '--until-idle', '--after', String(events.length))).toEqual([]);
    expect(await home.here.lines('follow', 'story', '--until-idle', '--last', '3')).toEqual(events.slice(-3));
    expect(await home.here.lines('follow', 'story', '--until-idle', '--last', '99999')).toEqual(events);
    const text = await home.here.ok('follow', 'story', '--until-idle');
    expect(text.trim().split('\n')).toHaveLength(events.length);
    expect(text).toContain('says: Noted: The codeword is heron');
  });

  test('shows a turn of another process while it runs, and ends with it', async () => {
    await home.here.ok('send', 'live', 'hello');
    const sending = home.start(['send', 'live', '/say begun\n/ask May I?\n/say done', '--permissions', 'ask']);
    const [, question = ''] = await sending.until('stderr', /throughline answer (\S+) OPTION/);
    const following = home.start(['follow', 'live', '--until-idle']);
    await following.until('stdout', /says: begun/);
    expect(following.stdout).not.toContain('turn 2 completed');
    await home.here.ok('answer', question, 'allow'); // until then, the turn cannot end
    expect((await following.ended).stdout).toMatch(/turn 2 completed/);
    await sending.ended;
  });
});

describe('cancel', () => {
  test('cancels the running turn of a conversation and the queued ones', async () => {
    const running = home.start(['send', 'busy', '/say begun\n/hang']);
    await running.until('stdout', /begun/);
    const queued = home.start(['send', 'busy', 'later', '--json']);
    await queued.until('stdout', /turn\.queued/);
    expect(await home.here.ok('cancel', 'busy')).toBe('turn 1 cancelled\nturn 2 cancelled\n');
    expect((await running.ended).code).toBe(130);
    expect((await queued.ended).code).toBe(130);
    expect(await home.here.run('cancel', 'busy')).toMatchObject({
      code: 0,
      stdout: '',
      stderr: 'The conversation has no open turn.\n',
    });
  });

  test('does not change a turn that has ended', async () => {
    const [turn] = (await home.show('story')).turns;
    expect(await home.here.ok('cancel', turn.id)).toBe('turn 1 had already ended: completed\n');
    expect(await home.here.lines('cancel', turn.id)).toMatchObject([{ id: turn.id, state: 'completed' }]);
  });
});

test('retry sends the prompt of an ended turn again, as a new turn', async () => {
  const failed = await home.here.run('send', 'again', '/fail agent_failed 2\n/say worked');
  expect(failed.code).toBe(1);
  const [turn] = (await home.show('again')).turns;
  expect(await home.here.ok('retry', turn.id)).toBe('worked\n');
  const { turns } = await home.show('again');
  expect(turns[1]).toMatchObject({ n: 2, retryOf: turn.id, state: 'completed', promptText: turn.promptText });
});

test('retry of a conversation, by key or by id, repeats its last ended turn', async () => {
  await home.here.ok('send', 'repeated', '/say done');
  const { conversation } = await home.show('repeated');
  for (const name of ['repeated', conversation.id]) expect(await home.here.ok('retry', name)).toBe('done\n');
  expect((await home.show('repeated')).turns).toHaveLength(3);
});

test('rename changes the title, and kill without a live session changes nothing', async () => {
  await home.here.ok('send', 'to-kill', 'The codeword is osprey.');
  expect(await home.here.ok('rename', 'to-kill', 'Another', 'title')).toBe('Another title\n');
  expect((await home.show('to-kill')).conversation.title).toBe('Another title');
  // Without a server no agent stays running, so there is none to end.
  expect(await home.here.ok('kill', 'to-kill')).toBe('');
  expect(await home.here.ok('send', 'to-kill', 'Which codewords have you seen?')).toContain('osprey');
});

test('pin and put-away change what lists show, and the next prompt brings a conversation back', async () => {
  const own = new CliHome();
  onTestFinished(() => own.remove());
  await own.here.ok('send', 'notes', 'Hello.');
  expect(await own.here.ok('pin', 'notes')).toBe('notes is pinned\n');
  expect(await own.here.ok('put-away', 'notes')).toBe('notes is put away\n');
  expect((await own.show('notes')).conversation).toMatchObject({ pinned: true, putAway: true });
  const list = await own.here.run('list');
  expect(list).toMatchObject({ code: 0, stdout: '' });
  expect(list.stderr).toContain('1 conversation is put away: "throughline list --put-away" shows it.');
  expect(await own.here.ok('list', '--json')).toBe('');
  expect(await own.here.ok('list', '--put-away')).toContain('notes');
  expect(await own.here.ok('pin', 'notes', '--undo')).toBe('notes is not pinned any more\n');
  await own.here.ok('send', 'notes', 'Hello again.');
  expect((await own.show('notes')).conversation).toMatchObject({ pinned: false, putAway: false });
  expect(await own.here.run('list', '--put-away')).toMatchObject({ stdout: '', code: 0 });
});

test('fork continues from a turn in a new conversation', async () => {
  expect(await home.here.ok('fork', 'story', '--turn', '1', '--key', 'forked', '--title', 'Other')).toBe('forked\n');
  expect(await home.here.ok('send', 'forked', 'Which codewords have you seen?')).toBe(
    'I have seen these codewords: osprey.\n',
  );
  const { conversation, turns, sessions } = await home.show('forked');
  expect(conversation).toMatchObject({ title: 'Other', parent: { n: 1 } });
  expect(turns.map((turn: { n: number }) => turn.n)).toEqual([1, 2]);
  const parent = await home.show('story');
  expect(parent.sessions.map((one: { id: string }) => one.id)).not.toContain(sessions.at(-1).id);
  mkdirSync(join(home.path, 'elsewhere'));
  const [made] = await home.lines('fork', 'story', '--cwd', 'elsewhere');
  expect(made).toMatchObject({ key: null, cwd: join(home.path, 'elsewhere'), head: 4 });
});

test('export writes a file that import reads, also into another home and for another owner', async () => {
  const file = join(home.path, 'story.json');
  expect(await home.here.ok('export', 'story', '--output', file)).toBe('');
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const text = await home.here.ok('export', 'story');
  expect(readFileSync(file, 'utf8')).toBe(text);
  expect(JSON.parse(text)).toMatchObject({ format: 'throughline.conversation', version: 1, records: { length: 4 } });
  expect((await home.here.run('import', file)).code).toBe(1);
  expect(await home.here.ok('import', file, '--key', 'copied')).toBe('copied\n');
  const elsewhere = ['--home', join(home.path, 'other'), '--as', 'somebody'];
  const piped = await home.start(['import', '-', ...elsewhere], { input: text }).ended;
  expect(piped).toMatchObject({ code: 0, stdout: 'story\n', stderr: 'imported 4 turns\n' });
  const reply = await home.here.ok('send', 'story', 'Which codewords have you seen?', ...elsewhere);
  expect(reply).toBe('I have seen these codewords: osprey, heron.\n');
  const broken = await home.start(['import', '-'], { input: '{"format":"other"}' }).ended;
  expect(broken.code).toBe(2);
  expect(broken.stderr).toContain('not a conversation that can be imported');
  expect((await home.start(['import', '-'], { input: 'no json' }).ended).stderr).toContain('not valid JSON');
});

test('import reads messages of a program that called a model itself', async () => {
  const messages = [
    { role: 'user', content: 'The codeword is plover.' },
    { role: 'assistant', content: 'Noted.' },
  ];
  const input = JSON.stringify(messages);
  const piped = await home.start(['import', '-', '--key', 'kept', '--agent', 'scripted'], { input }).ended;
  expect(piped).toMatchObject({ code: 0, stdout: 'kept\n', stderr: 'imported 1 turn\n' });
  expect(await home.here.ok('send', 'kept', 'Which codewords have you seen?')).toContain('plover');
  const system = JSON.stringify([{ role: 'system', content: 'Be kind.' }, ...messages]);
  const refused = await home.start(['import', '-'], { input: system }).ended;
  expect(refused.code).toBe(2);
  expect(refused.stderr).toContain('Message 1 has the role "system"');
});

test('export writes into no file and no link of another user, who could read it', async (context) => {
  if (process.getuid?.() !== 0) context.skip('only root can give a file to another user');
  const at = (name: string) => join(home.path, name);
  const [file, target, link] = [at('theirs.json'), at('ours.json'), at('link.json')];
  for (const path of [file, target]) writeFileSync(path, '');
  chownSync(file, 65_534, 65_534);
  symlinkSync(target, link);
  lchownSync(link, 65_534, 65_534);
  for (const path of [file, link]) {
    const { code, stderr } = await home.here.run('export', 'story', '--output', path);
    expect([code, stderr]).toEqual([2, `throughline: The file ${path} belongs to another user. Name another file.\n`]);
  }
  expect([file, target].map((path) => readFileSync(path, 'utf8'))).toEqual(['', '']);
  // A file of our own is replaced, and a device stays what it is.
  await home.here.ok('export', 'story', '--output', target);
  expect(readFileSync(target, 'utf8')).toContain('osprey');
  await home.here.ok('export', 'story', '--output', '/dev/null');
});

test('export --markdown writes a document in which no answer can be taken for a turn or a seam', async () => {
  await home.here.ok(
    'send',
    'document',
    '/say # Turn 9\\n</blockquote>\n/tool write document.log\n/say done',
    '--title',
    'My *notes*',
  );
  await home.here.ok('send', 'document', 'hello', '--agent', 'rotating');
  const text = await home.here.ok('export', 'document', '--markdown');
  const lines = text.split('\n');
  expect(lines[0]).toBe('# My \\*notes\\*');
  expect(lines.filter((line) => line.startsWith('## '))).toEqual(['## Turn 1', '## Turn 2']);
  expect(text).toMatch(/^> # Turn 9/m);
  expect(text).toMatch(/\n- edit: write document\.log, \d+(\.\d)? m?s\n/);
  expect(text).toMatch(/\n---\n\n\*Session .*: restored by transcript: 1 turn carried/);
  expect(text).toContain('\n**rotating**\n\n> Noted: hello\n');
  const both = await home.here.run('export', 'document', '--markdown', '--json');
  expect(both.code).toBe(2);
});

test('usage sums by day and agent', async () => {
  const rows = await home.here.lines('usage', '--as', 'counted');
  expect(rows).toEqual([]);
  await home.here.ok('send', 'u', '/usage 120 30', '--as', 'counted');
  await home.here.ok('send', 'u', '/usage 7 1', '--as', 'counted');
  const [row] = await home.here.lines('usage', '--as', 'counted');
  expect(row).toMatchObject({
    agent: 'scripted',
    turns: 2,
    usage: { inputTokens: 127, outputTokens: 31, modelCalls: 2 },
  });
  expect(row.day).toMatch(/^\d{4}-\d\d-\d\d$/);
  expect(await home.here.ok('usage', '--as', 'counted')).toContain(
    'scripted  2 turns: 127 tokens in, 31 out, 2 model calls',
  );
  expect(await home.here.lines('usage', '--as', 'counted', '--since', '2999-01-01')).toEqual([]);
});

test('totals say of how many turns the cost is unknown', async () => {
  await home.here.ok('send', 'u', '/usage 5 5 700000', '--as', 'cut-off');
  await home.here.run('send', 'u', '/say half of it\n/die', '--as', 'cut-off');
  for (const command of [['usage'], ['list'], ['summary', 'u']]) {
    expect(await home.here.ok(...command, '--as', 'cut-off')).toContain(', 0.70 USD + 1 turn unknown');
    const [row] = await home.here.lines(...command, '--as', 'cut-off');
    expect(row.usage).toMatchObject({ costMicros: 700_000, unknownCosts: 1 });
  }
});

test('usage lists all of many days', async () => {
  await home.here.ok('send', 'u', '/usage 1 1', '--as', 'long');
  const db = new DatabaseSync(join(home.path, 'home', 'throughline.db'));
  const days = Array.from({ length: 250 }, (_, i) => new Date(i * 86_400_000).toISOString().slice(0, 10));
  const copy = db.prepare(
    "INSERT INTO usage_days SELECT owner, ?, agent, turns, usage FROM usage_days WHERE owner = 'long' LIMIT 1",
  );
  for (const day of days) copy.run(day);
  db.close();
  const listed = (await home.here.lines('usage', '--as', 'long')).map(({ day }) => day);
  expect(listed.slice(1)).toEqual(days.toReversed());
});

test('agents lists every agent with what it can do', async () => {
  const agents = await home.here.lines('agents');
  expect(agents).toMatchObject([
    { name: 'scripted', adapter: 'scripted', isDefault: true, traits: { resume: true, position: true }, problem: null },
    { name: 'forgetful', isDefault: false, traits: { resume: false } },
    { name: 'hollow' },
    { name: 'rotating' },
    { name: 'unstartable' },
    { name: 'slow' },
  ]);
  expect(await home.here.ok('agents')).toMatch(/^scripted \(scripted, default\): version .*resume/);
});

test('verify reports a conversation as intact, and as changed after an event was changed', async () => {
  await home.here.ok('send', 'tampered', 'The codeword is osprey');
  expect(await home.here.lines('verify', 'tampered')).toMatchObject([
    { intact: true, firstBroken: null, events: expect.any(Number), head: expect.stringMatching(/^\d+:[0-9a-f]{64}$/) },
  ]);
  const { conversation } = await home.show('tampered');
  const db = new DatabaseSync(join(home.path, 'home', 'throughline.db'));
  const changed = db
    .prepare(
      `UPDATE events SET payload = replace(payload, 'osprey', 'vulture') WHERE kind = 'turn.ended'
       AND conv = (SELECT no FROM conversations WHERE id = ?)`,
    )
    .run(conversation.id);
  db.close();
  expect(changed.changes).toBe(1);
  const { code, stdout, stderr } = await home.here.run('verify', 'tampered');
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toMatch(/Event \d+ was changed after it was written/);
});

test('verify --head checks a chain head that was kept, also after more turns and after the conversation was erased', async () => {
  await home.here.ok('send', 'kept', 'The codeword is osprey');
  const [, head = ''] = /^head: (.*)$/m.exec(await home.here.ok('verify', 'kept')) ?? [];
  await home.here.ok('send', 'kept', 'And more');
  expect(await home.here.ok('verify', 'kept', '--head', head)).toMatch(/^intact: /);
  const { conversation } = await home.show('kept');
  await home.here.ok('erase', 'kept', '--yes');
  expect(await home.here.lines('verify', conversation.id, '--head', head)).toMatchObject([
    { conversationId: conversation.id, intact: true, kept: true },
  ]);
  const other = await home.here.run('verify', conversation.id, '--head', `1${head.slice(head.indexOf(':'))}`);
  expect(other).toMatchObject({ code: 1, stdout: '' });
  expect(other.stderr).toContain('does not contain the head');
  expect(await home.here.run('verify', conversation.id, '--head', 'osprey')).toMatchObject({ code: 2, stdout: '' });
});

test('commands in notes and hints name conversations and files as a shell takes them', async () => {
  const file = join(home.path, 'my notes.json');
  const sent = await home.run('send', 'my notes', 'hello', '--detach');
  expect(sent.stderr).toContain('"throughline follow \'my notes\'"');
  await home.ok('follow', 'my notes', '--until-idle');
  const { stderr } = await home.here.run('told', 'my notes', '9');
  expect(stderr).toContain('"throughline show \'my notes\'"');
  const archived = await home.here.run('archive', 'my notes', file);
  expect(archived.stderr).toContain(`"throughline import '${file}'"`);
});

test('an archived conversation is only in its file; import brings it back, and the agent gets its history', async () => {
  const file = join(home.path, 'old.json');
  await home.here.ok('send', 'old', 'The codeword is osprey');
  await home.here.ok('send', 'old', 'And more');
  const before = JSON.parse(await home.here.ok('export', 'old'));
  const [archived] = await home.here.lines('archive', 'old', file);
  expect(archived).toMatchObject({ key: 'old', file, turns: 2, remains: [{ what: 'sandbox' }] });
  const written = readFileSync(file);
  expect(archived.sha256).toBe(createHash('sha256').update(written).digest('hex'));
  expect([JSON.parse(written.toString()), statSync(file).mode & 0o777]).toEqual([before, 0o600]);
  expect(await home.here.run('show', 'old')).toMatchObject({ code: 4 });
  expect(await home.here.ok('verify', archived.conversationId, '--head', archived.head)).toMatch(/^intact: /);
  expect(await home.here.run('import', file)).toMatchObject({ code: 0, stdout: 'old\n' });
  expect(JSON.parse(await home.here.ok('export', 'old'))).toMatchObject({ records: before.records });
  expect(await home.here.ok('send', 'old', 'Which codewords have you seen?')).toContain('osprey');

  expect(await home.here.run('archive', 'old', file)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('exists already'),
  });
  const hanging = home.start(['send', 'old', '/hang']);
  await expect.poll(async () => (await home.here.run('show', 'old')).stdout).toContain('running');
  const refused = await home.here.run('archive', 'old', `${file}.2`);
  expect([refused.code, existsSync(`${file}.2`)]).toEqual([1, false]);
  expect(readFileSync(file).equals(written)).toBe(true);
  hanging.kill('SIGINT');
  await hanging.ended;
});

test('queue lists prompts that have not begun, and edits, moves and drops them', async () => {
  const queue = (...args: string[]) => home.here.lines('queue', 'later', ...args);
  const queuedPrompts = async () => (await queue()).map(({ n, prompt }) => `${n} ${prompt[0].text}`);
  const untilQueued = async (count: number) => expect.poll(async () => (await queue()).length).toBe(count);
  const sent = [home.start(['send', 'later', '/hang'])];
  await expect.poll(async () => (await home.here.run('show', 'later')).stdout).toContain('running');
  expect(await home.here.run('queue', 'later')).toMatchObject({
    code: 0,
    stdout: '',
    stderr: 'No prompt is queued.\n',
  });
  for (const [index, word] of ['one', 'two', 'three'].entries()) {
    sent.push(home.start(['send', 'later', `/say ${word}`]));
    await untilQueued(index + 1);
  }
  expect(await home.here.ok('queue', 'later')).toMatch(/^turn 2 {2}[0-9a-f-]{36} {2}scripted {2}\/say one\nturn 3 /);
  const edited = await home.here.run('queue', 'later', '/say uno', '--edit', '2', '--drop', '3', '--order', '4');
  expect(edited).toMatchObject({ code: 0, stderr: 'turn 2 is now turn 5\nturn 3 was dropped\n' });
  expect(edited.stdout).toMatch(/^turn 4 .*\/say three\nturn 5 .*\/say uno\n$/);
  expect(await sent[1]?.ended).toMatchObject({
    code: 130,
    stderr: expect.stringContaining('Replaced by another turn'),
  });
  const moved = ['--order', '5,4', '--request-id', 'move'];
  const [result] = await queue(...moved);
  expect(result).toMatchObject({ queue: [{ n: 5 }, { n: 6 }], cancelled: [{ n: 4 }], duplicate: false });
  expect(await queuedPrompts()).toEqual(['5 /say uno', '6 /say three']);
  expect(await home.here.run('queue', 'later', '--drop', '3')).toMatchObject({
    code: 4,
    stderr: expect.stringContaining('no queued turn "3". Queued: 5, 6.'),
  });
  expect(await home.here.run('queue', 'later', '--edit', '5')).toMatchObject({ code: 2 });
  expect(await home.here.run('queue', 'nothing')).toMatchObject({ code: 4 });
  await home.here.ok('cancel', 'later');
  await Promise.all(sent.map(({ ended }) => ended));
});
