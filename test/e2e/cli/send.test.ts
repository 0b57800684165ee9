import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { AGENTS } from './agents.ts';
import { CliHome, parseLines, until } from './process.ts';

const home = new CliHome();
afterAll(() => home.remove());

describe('throughline send', () => {
  test('creates the conversation, writes the answer to stdout and the receipt to stderr', async () => {
    const first = await home.run('send', 'plain', 'The codeword is osprey');
    expect(first).toMatchObject({ code: 0, stdout: 'Noted: The codeword is osprey\n' });
    expect(first.stderr).toBe('new session: nothing to carry\n');
    const second = await home.run('send', 'plain', 'Which codewords have you seen?');
    expect(second).toMatchObject({ code: 0, stdout: 'I have seen these codewords: osprey.\n' });
    expect(second.stderr).toBe('restored by resume: 1 turn carried, 0 dropped, proof proved\n');
  });

  test('restores what the agent has forgotten, and says how', async () => {
    await home.ok('send', 'forgot', 'The codeword is heron', '--agent', 'forgetful');
    const { stdout, stderr } = await home.run('send', 'forgot', 'Which codewords have you seen?');
    expect(stdout).toBe('I have seen these codewords: heron.\n');
    expect(stderr).toMatch(/^restored by transcript: 1 turn carried, 0 dropped, proof counted/);
  });

  test('restores nothing with --restore off, and says that the session is fresh', async () => {
    await home.ok('send', 'fresh', 'The codeword is wren');
    const { stdout, stderr } = await home.run('send', 'fresh', 'Which codewords have you seen?', '--restore', 'off');
    expect(stdout).toBe('I have seen no codewords.\n');
    expect(stderr).toBe('fresh session without the history: 0 turns carried, 1 dropped, proof none\n');
  });

  test('delivers only the last turns with --last-turns, and counts those that it left out', async () => {
    for (const word of ['one', 'two', 'three']) {
      await home.ok('send', 'budget', `The codeword is ${word}`, '--agent', 'forgetful');
    }
    const { stdout, stderr } = await home.run('send', 'budget', 'Which codewords have you seen?', '--last-turns', '1');
    expect(stdout).toBe('I have seen these codewords: three.\n');
    expect(stderr).toContain('1 turn carried, 2 dropped');
    const none = await home.run('send', 'budget', 'Which codewords have you seen?', '--budget-tokens', '0');
    expect(none.code).toBe(6);
  });

  test('continues in a session that it can resume, whatever --rung is, and replaces it with --rebuild', async () => {
    await home.ok('send', 'rung', 'The codeword is lynx');
    const ask = (...flags: string[]) => home.run('send', 'rung', 'Which codewords have you seen?', ...flags);
    expect((await ask('--rung', 'replay')).stderr).toMatch(/^restored by resume: /);
    const { stdout, stderr } = await ask('--rung', 'replay', '--rebuild');
    expect(stdout).toBe('I have seen these codewords: lynx.\n');
    expect(stderr).toMatch(/^restored by replay: .*2 model calls for restoring/);
    expect((await ask('--rebuild')).stderr).toMatch(/^restored by transcript: /);
    // No command finds a living session of the one before it.
    const config = join(home.path, 'prefers-live.json');
    writeFileSync(config, JSON.stringify({ agents: AGENTS, restore: { rung: 'live' } }));
    const refused = await ask('--config', config);
    expect([refused.code, refused.stderr]).toEqual([6, expect.stringContaining('or none ("rung": null, --rung none)')]);
    expect((await ask('--config', config, '--rung', 'none')).stderr).toMatch(/^restored by resume: /);
  });

  test('refuses more than 8 MiB from stdin, and creates no conversation then', async () => {
    const { code, stderr } = await home.start(['send', 'endless', '-'], { input: 'x'.repeat(8 * 1_048_576 + 1) }).ended;
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: 'throughline: The input is larger than 8 MiB. Write it to a file, and name the file in the prompt.\n',
    });
    expect((await home.run('show', 'endless')).code).toBe(4);
  });

  test('reads the prompt from stdin, to the last byte', async () => {
    const prompt = `The codeword is otter\n${'ü'.repeat(100_000)}`;
    const { code } = await home.start(['send', 'stdin', '-'], { input: prompt }).ended;
    expect(code).toBe(0);
    expect((await home.show('stdin')).turns[0]).toMatchObject({
      prompt: [{ type: 'text', text: prompt }],
      promptText: prompt,
    });
  });

  test('takes a prompt that looks like an option after --', async () => {
    expect(await home.ok('send', '--quiet', 'dashes', '--', '--help me')).toBe('Noted: --help me\n');
  });

  test('writes the answer while it arrives', async () => {
    const running = home.start(['send', 'stream', `/say The beginning,\n/await ${home.path}/go\n/say and the end.`]);
    await running.until('stdout', /^The beginning,/);
    writeFileSync(join(home.path, 'go'), ''); // until then, the turn cannot end
    expect((await running.ended).stdout).toMatch(/^The beginning,\s*and the end\.\n$/);
  });

  test('writes exactly the answer that is stored, also with tools in between', async () => {
    const prompt = '/say before\n/think hard\n/tool write notes.log\n/say after';
    const { stdout, stderr } = await home.run('send', 'parts', prompt);
    const [turn] = (await home.show('parts')).turns;
    expect(stdout).toBe(`${turn.reply}\n`);
    expect(turn.reply).toBe('before\n\nafter');
    expect(stderr).toContain('tool: write notes.log');
  });

  test('is silent on stderr with --quiet', async () => {
    expect(await home.run('send', 'quiet', 'hello', '--quiet')).toMatchObject({ code: 0, stderr: '' });
  });

  test('sets the title, and pins the directory', async () => {
    const cwd = join(home.path, 'project');
    mkdirSync(cwd);
    const reply = await home.ok('send', 'pinned', 'Which directory are you in?', '--cwd', 'project', '--title', 'Mine');
    expect(reply).toBe(`I am in ${cwd}.\n`);
    expect((await home.show('pinned')).conversation).toMatchObject({ title: 'Mine', cwd });
    const other = await home.run('send', 'pinned', 'hello', '--cwd', '.');
    expect(other.code).toBe(2);
    expect(other.stderr).toContain('another working directory');
  });

  test('hands over to another agent with --agent, which gets the history', async () => {
    await home.ok('send', 'handoff', 'The codeword is marten');
    const reply = await home.ok('send', 'handoff', 'Which codewords have you seen?', '--agent', 'rotating');
    expect(reply).toBe('I have seen these codewords: marten.\n');
    expect((await home.show('handoff')).turns.map((turn: { agent: string }) => turn.agent)).toEqual([
      'scripted',
      'rotating',
    ]);
  });

  test('takes over a session that the agent already has, with its history', async () => {
    const config = join(home.path, 'one-storage.json');
    const scripted = { adapter: 'scripted', options: { dir: join(home.path, 'storage') } };
    writeFileSync(config, JSON.stringify({ agents: { scripted }, defaultAgent: 'scripted' }));
    await home.ok('send', 'from', 'The codeword is raven', '--config', config);
    const [session] = await home.lines('sessions', 'from', '--config', config);
    // Another data home, to which the session is unknown.
    const elsewhere = ['--home', join(home.path, 'elsewhere'), '--config', config];
    const prompt = 'Which codewords have you seen?';
    const { stdout, stderr } = await home.run('send', 'into', prompt, '--session', session.id, ...elsewhere);
    expect(stdout).toBe('I have seen these codewords: raven.\n');
    expect(stderr).toBe('restored by resume: 1 turn carried, 0 dropped, proof proved\n');
    expect(await home.lines('sessions', 'into', ...elsewhere)).toMatchObject([{ id: session.id, origin: 'adopted' }]);
  });

  test('refuses a session that the agent does not have', async () => {
    const refused = await home.run('send', 'into', 'hello', '--session', 'no-such-session');
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain('no-such-session');
    expect((await home.show('into')).turns[0]).toMatchObject({ state: 'failed', sent: null });
  });

  test('refuses an option with an invalid value, and creates no conversation', async () => {
    const refused = await home.run('send', 'unread', 'Hello', '--title', 'Unread', '--set', 'effort');
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('must be ID=VALUE') });
    expect((await home.run('show', 'unread')).code).toBe(4);
  });

  test('refuses an empty prompt, and creates no conversation', async () => {
    const { code, stderr } = await home.start(['send', 'empty', '-'], { input: ' \n' }).ended;
    expect(code).toBe(2);
    expect(stderr).toBe('throughline: The prompt is empty.\n');
    expect((await home.run('show', 'empty')).code).toBe(4);
  });
});

describe('throughline send --json', () => {
  test('writes every event, numbered without gaps, and then the result', async () => {
    const lines = await home.lines('send', 'json', 'hello');
    const result = lines.pop();
    expect(lines[0]).toMatchObject({ kind: 'turn.queued', payload: { n: 1, preview: 'hello' } });
    expect(lines.at(-1)).toMatchObject({
      kind: 'turn.ended',
      payload: { outcome: 'completed', reply: 'Noted: hello' },
    });
    expect(lines.map((event) => event.seq)).toEqual(lines.map((_, index) => lines[0].seq + index));
    expect(result).toMatchObject({
      kind: 'result',
      turn: { id: lines[0].turnId, n: 1, state: 'completed', agent: 'scripted' },
      reply: 'Noted: hello',
      receipt: { turn: 1, rung: 'new', carried: 0, dropped: 0, tried: [] },
    });
  });

  test('writes an error as one line on stderr, beside the result', async () => {
    const { code, stdout, stderr } = await home.run('send', 'json-fails', '/fail agent_failed', '--json');
    expect(code).toBe(1);
    expect(parseLines(stderr)).toEqual([
      { error: { code: 'agent_failed', message: 'Turn 1: failed as asked: agent_failed' } },
    ]);
    expect(parseLines(stdout).at(-1)).toMatchObject({ kind: 'result', turn: { state: 'failed' }, reply: '' });
  });
});

describe('a request id', () => {
  test('makes repeating safe: the same turn, the same answer, nothing done twice', async () => {
    const args = ['send', 'once', '/tool write effects.log\n/say done', '--request-id', 'r1'];
    expect(await home.ok(...args)).toBe('done\n');
    const again = await home.run(...args);
    expect(again).toMatchObject({ code: 0, stdout: 'done\n' });
    expect(again.stderr).toContain('already accepted');
    const { turns } = await home.show('once');
    expect(turns).toMatchObject([{ n: 1, requestId: 'r1' }]);
  });

  test('of a turn whose process was killed prints what is stored of it, and does not send the prompt again', async () => {
    const args = ['send', 'once-killed', '/stream 100000 2', '--request-id', 'r4'];
    const first = home.start(args);
    await first.until('stdout', /chunk 1 /);
    first.kill('SIGKILL');
    await first.ended;
    const again = await home.run(...args);
    expect(again.code).toBe(7);
    const { turns } = await home.show('once-killed');
    expect(turns).toMatchObject([{ state: 'interrupted', attempt: 1 }]);
    // The reply can be longer than the output of the killed process: it also has what only the agent had stored.
    expect(again.stdout).toBe(`${turns[0].reply}\n`);
    expect(again.stdout.length).toBeGreaterThanOrEqual(first.stdout.length);
  });

  test('of a failed turn ends with the same exit code again', async () => {
    const args = ['send', 'once-failed', '/fail agent_failed', '--request-id', 'r2'];
    expect((await home.run(...args)).code).toBe(1);
    expect((await home.run(...args)).code).toBe(1);
    expect((await home.show('once-failed')).turns).toHaveLength(1);
  });

  test('is a conflict with another prompt', async () => {
    await home.ok('send', 'conflict', 'one', '--request-id', 'r3');
    const { code, stderr } = await home.run('send', 'conflict', 'two', '--request-id', 'r3', '--json');
    expect(code).toBe(1);
    expect(parseLines(stderr)[0].error.code).toBe('conflict');
    expect((await home.show('conflict')).turns).toHaveLength(1);
  });
});

describe('several processes', () => {
  test('that send to one conversation at the same time each get their own answer, and every turn runs once', async () => {
    const words = ['alpha', 'beta', 'gamma', 'delta'];
    const ended = await Promise.all(words.map((word) => home.run('send', 'shared', `/say ${word}`)));
    expect(ended.map(({ code, stdout }) => ({ code, stdout }))).toEqual(
      words.map((word) => ({ code: 0, stdout: `${word}\n` })),
    );
    const { turns } = await home.show('shared');
    expect(turns.map((turn: { n: number }) => turn.n)).toEqual([1, 2, 3, 4]);
    expect(turns.map((turn: { reply: string }) => turn.reply).sort()).toEqual(words.toSorted());
    expect(await home.ok('verify', 'shared')).toMatch(/^intact: (\d+) events\nhead: \1:[0-9a-f]{64}\n$/);
  });

  test('print that a turn waits because another process holds the conversation', async () => {
    const first = home.start(['send', 'held', '/say begun\n/hang']);
    await first.until('stdout', /begun/);
    const second = home.start(['send', 'held', 'hello']);
    await second.until('stderr', /Waiting: another process holds the conversation/);
    first.kill('SIGINT');
    expect(await second.ended).toMatchObject({ code: 0, stdout: 'Noted: hello\n' });
  });

  test('end the turn of a killed process as interrupted, and then run their own', async () => {
    const first = home.start(['send', 'killed', '/hang']);
    await until(async () => (await home.run('show', 'killed', '--json')).stdout.includes('"sent":{'));
    first.kill('SIGKILL');
    const second = await home.run('send', 'killed', 'hello');
    expect(second).toMatchObject({ code: 0, stdout: 'Noted: hello\n' });
    expect((await home.show('killed')).turns.map((turn: { state: string }) => turn.state)).toEqual([
      'interrupted',
      'completed',
    ]);
  });
});

test('a refused first prompt leaves no conversation behind, also with settings for a new one', async () => {
  const refused = ['--session', 'one', '--new-session', 'two'];
  for (const settings of [
    ['--cwd', '.'],
    ['--title', 'A title'],
    ['--limit-per-day', '50k tokens'],
  ]) {
    const { code, stderr } = await home.run('send', 'refused first', 'hello', ...settings, ...refused);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('not both') });
    expect((await home.run('show', 'refused first')).code).toBe(4);
  }
  await home.ok('send', 'refused first', 'hello', '--cwd', '.', '--title', 'A title');
  expect((await home.show('refused first')).conversation).toMatchObject({ cwd: home.path, title: 'A title' });
});

describe('throughline send --detach', () => {
  test('returns when the turn is accepted, and the turn continues', async () => {
    const go = join(home.path, 'go-on');
    const { code, stdout, stderr } = await home.run('send', 'detached', `/await ${go}\n/say done`, '--detach');
    expect(code).toBe(0);
    const [turn] = (await home.show('detached')).turns;
    expect(turn.state).not.toBe('completed');
    expect(stdout).toBe(`${turn.id}\n`);
    expect(stderr).toContain('turn 1 is accepted');
    writeFileSync(go, '');
    await home.ok('follow', 'detached', '--until-idle');
    expect((await home.show('detached')).turns[0]).toMatchObject({ state: 'completed', reply: 'done' });
  });

  test('keeps every option, and a long prompt from stdin', async () => {
    const prompt = `long ${'x'.repeat(300_000)}`;
    const args = ['send', 'detached-long', '-', '--detach', '--agent', 'rotating', '--request-id', 'd1', '--json'];
    const { stdout } = await home.start(args, { input: prompt }).ended;
    expect(parseLines(stdout)).toMatchObject([
      { kind: 'turn.queued', payload: { agent: 'rotating', requestId: 'd1' } },
    ]);
    expect((await home.show('detached-long')).turns[0].promptText).toBe(prompt);
    await home.ok('follow', 'detached-long', '--until-idle');
  });

  test('says what is wrong when the turn is not accepted', async () => {
    const { code, stderr } = await home.run('send', 'detached-not', 'hello', '--detach', '--cwd', 'nowhere');
    expect(code).toBe(2);
    expect(stderr).toMatch(/^throughline: The working directory .* does not exist/);
  });
});
