import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { until } from '../faults/harness/until.ts';
import { CliHome } from './cli/process.ts';
import { EXAMPLES, endPrograms, killWhenWritten, Program, startLoginApp } from './example-programs.ts';
import { serveProcess } from './http/support/served-process.ts';

// The example programs of docs/library.md, run as a user would run them: real processes, real requests, real kills.

let scratch: string;
beforeEach(() => {
  scratch = mkdtempSync(join(tmpdir(), 'throughline-programs-'));
});
afterEach(async () => {
  await endPrograms();
  rmSync(scratch, { recursive: true, force: true, maxRetries: 20 });
});

describe('the orchestrator', () => {
  const start = (env?: NodeJS.ProcessEnv) => {
    mkdirSync(join(scratch, 'work'), { recursive: true });
    return new Program('orchestrator.ts', [join(scratch, 'home'), join(scratch, 'work')], env);
  };
  const linesOf = (file: string) =>
    readFileSync(join(scratch, 'work', file), 'utf8')
      .trim()
      .split('\n');

  test('retries a task whose gate failed, lets a rule decide in place of a person, and uses one session', async () => {
    const program = start();
    expect(await program.ended, program.output).toBe(0);
    expect(program.lines).toEqual([
      'planned: changelog, version, announce',
      'changelog: retry. The gate failed: exit code 1.',
      'changelog: done. The gate passed: exit code 0.',
      'version: retry. The gate failed: exit code 1.',
      'version: retry. The gate failed: exit code 1.',
      'version: give-up. The gate has not passed in 3 turns.',
      'version: done. The gate passed: exit code 0.',
      'announce: done. The turn completed, and there is no gate.',
      'changelog: done after 2 turns',
      'version: done after 4 turns',
      'announce: done after 1 turns',
      'sessions: 1',
      'last reply: I have seen these codewords: amber.',
    ]);
  });

  test('continues the same tasks after a kill, and repeats nothing that was done', async () => {
    const killed = start(killWhenWritten('orchestrator.ts', 'changelog: done'));
    expect(await killed.ended, killed.output).toBeNull();
    expect(killed.lines.at(-1)).toBe('changelog: done. The gate passed: exit code 0.');
    const next = start();
    expect(await next.ended, next.output).toBe(0);
    expect(next.lines[0]).toBe('continuing');
    expect(next.output).not.toContain('changelog: retry');
    expect(next.output).toContain('version: give-up. The gate has not passed in 3 turns.');
    expect(next.lines.at(-1)).toBe('last reply: I have seen these codewords: amber.');
    expect([linesOf('CHANGES').length, linesOf('APPROVED').length]).toEqual([2, 1]);
  });
});

describe('the web app', () => {
  const start = async () => {
    const program = new Program('web-app.ts', [join(scratch, 'home')]);
    return { program, url: await program.until(/http:\/\/127\.0\.0\.1:\d+/) };
  };

  /** The requests of a browser that is logged in under this name. */
  async function browser(url: string, name: string) {
    const response = await fetch(`${url}/login`, { method: 'POST', body: name });
    const cookie = response.headers.get('set-cookie')?.split(';')[0] ?? '';
    return {
      get: (path: string) => fetch(`${url}${path}`, { headers: { cookie } }),
      say: (key: string, text: string, id: string) =>
        fetch(`${url}/chats/${key}`, { method: 'POST', body: text, headers: { cookie, 'idempotency-key': id } }),
      /** The server-sent events after a number, up to the first of this kind. */
      async events(
        key: string,
        after: number,
        last: string,
      ): Promise<{ id: number; kind: string; payload: Payload }[]> {
        const abort = new AbortController();
        const headers = { cookie, ...(after > 0 && { 'last-event-id': String(after) }) };
        const stream = await fetch(`${url}/chats/${key}/events`, { headers, signal: abort.signal });
        const seen: { id: number; kind: string; payload: Payload }[] = [];
        let text = '';
        for await (const chunk of stream.body?.pipeThrough(new TextDecoderStream()) ?? []) {
          const messages = `${text}${chunk}`.split('\n\n');
          text = messages.pop() ?? '';
          for (const message of messages) {
            const [, id = '', data = ''] = /^id: (\d+)\ndata: (.*)$/.exec(message) ?? [];
            seen.push({ ...JSON.parse(data), id: Number(id) });
          }
          if (seen.some(({ kind }) => kind === last)) break;
        }
        abort.abort();
        return seen;
      },
    };
  }
  type Payload = { readonly reply?: string; readonly preview?: string };

  test('two users with the same keys and request ids see nothing of each other, before and after a kill', async () => {
    const { program, url } = await start();
    expect((await fetch(`${url}/chats`)).status).toBe(401);
    expect(await (await fetch(url)).text()).toContain('EventSource');
    expect((await fetch(`${url}/%ff`)).status).toBe(500); // the app does not crash
    const [ann, bob] = await Promise.all([browser(url, 'ann'), browser(url, 'bob')]);
    const sent = await ann.say('support', 'The codeword is amber.', 'r-1');
    expect(sent.status).toBe(202);
    expect(await (await ann.say('support', 'The codeword is amber.', 'r-1')).json()).toEqual(await sent.json());
    expect((await ann.say('support', 'Something else.', 'r-1')).status).toBe(409);
    expect((await bob.get('/chats/support')).status).toBe(404);
    await bob.say('support', 'The codeword is birch.', 'r-1');
    const seen = await ann.events('support', 0, 'turn.ended');
    expect(seen.map(({ id }) => id)).toEqual(seen.map((_, index) => index + 1));
    expect(seen.at(-1)?.payload.reply).toBe('Noted: The codeword is amber.');
    await program.kill();

    const again = await start();
    const [annLater, bobLater] = await Promise.all([browser(again.url, 'ann'), browser(again.url, 'bob')]);
    await annLater.say('support', 'Which codewords have you seen?', 'r-2');
    await bobLater.say('support', 'Which codewords have you seen?', 'r-2');
    const after = seen.at(-1)?.id ?? 0;
    const [annSees, bobSees] = await Promise.all([
      annLater.events('support', after, 'turn.ended'),
      bobLater.events('support', 0, 'turn.ended'),
    ]);
    expect(annSees[0]?.id).toBe(after + 1);
    expect(annSees.at(-1)?.payload.reply).toBe('I have seen these codewords: amber.');
    expect(JSON.stringify(bobSees)).not.toContain('amber');
    await until('bob has his answer', async () => {
      const turns = (await (await bobLater.get('/chats/support')).json()) as { reply: string }[];
      return turns.at(-1)?.reply === 'I have seen these codewords: birch.';
    });
    expect(await (await annLater.get('/chats')).json()).toMatchObject([{ key: 'support', owner: 'ann' }]);
    await again.program.stop();
  });
});

describe('the app with a login', () => {
  let home: CliHome;
  beforeEach(() => {
    home = new CliHome();
  });
  afterEach(() => home.remove());

  test('acts for its users with one key; another process answers the next request of a user, and no user sees another', async () => {
    const { url } = await serveProcess(home);
    const create = [
      '--as',
      'shop',
      'keys',
      'create',
      'the shop',
      '--scopes',
      'act-as,read,prompt',
      '--owners',
      'shop:*',
    ];
    const key = (await home.ok(...create)).trim();
    const env = { ...process.env, THROUGHLINE_SERVER: url, THROUGHLINE_TOKEN: key };
    const [one, two] = await Promise.all([startLoginApp(env), startLoginApp(env)]);
    expect(await one.login('ann', 'a guess')).toMatchObject({ status: 401, cookie: '' });
    for (const name of ['ann', 'eve']) expect(await one.login(name)).toMatchObject({ status: 401, cookie: '' });
    const { cookie: ann } = await one.login('ann', 'a heron at dawn');
    const { cookie: bob } = await two.login('bob', 'a wren at noon');
    expect((await one.say('', 'hello', 'r-0')).status).toBe(401);
    expect((await one.say(ann.replace('ann', 'bob'), 'hello', 'r-0')).status).toBe(401); // the signature is for ann
    expect((await one.say(ann, 'The codeword is amber.', 'r-1')).status).toBe(202);
    expect((await two.say(bob, 'The codeword is birch.', 'r-1')).status).toBe(202);
    await one.program.kill();

    expect(await two.answerOf(ann, 1)).toBe('Noted: The codeword is amber.');
    for (const cookie of [ann, bob]) {
      expect((await two.say(cookie, 'Which codewords have you seen?', 'r-2')).status).toBe(202);
    }
    expect(await two.answerOf(ann, 2)).toBe('I have seen these codewords: amber.');
    expect(await two.answerOf(bob, 2)).toBe('I have seen these codewords: birch.');
    expect(JSON.stringify(await two.replies(bob))).not.toContain('amber');
    expect((await home.lines('--as', 'shop:ann', 'list')).map((chat) => chat.key)).toEqual(['support']);
    await two.program.stop();
  });
});

describe('the short-lived function', () => {
  const FUNCTION = join(EXAMPLES, 'function.ts');
  let home: CliHome;
  beforeEach(() => {
    home = new CliHome();
  });
  afterEach(() => home.remove());

  /** Calls the function in a new process, as a platform for functions may do. */
  function call(env: Readonly<Record<string, string>>, method: 'GET' | 'POST', search: string, body?: object) {
    const request = { method, ...(body && { body: JSON.stringify(body) }) };
    const code = `
      const { handle } = await import(${JSON.stringify(FUNCTION)});
      const answer = await handle(new Request('http://function/${search}', ${JSON.stringify(request)}));
      console.log(JSON.stringify({ status: answer.status, body: await answer.json() }));`;
    const args = ['--input-type=module', '--eval', code];
    return JSON.parse(
      execFileSync(process.execPath, args, { env: { ...home.environment(), ...env }, encoding: 'utf8' }),
    );
  }

  test('submits its prompt to a server and ends; a later call gets the answer', async () => {
    const { url } = await serveProcess(home);
    const key = (await home.ok('keys', 'create', 'function', '--scopes', 'read,prompt')).trim();
    const env = { THROUGHLINE_SERVER: url, THROUGHLINE_TOKEN: key };
    const message = { id: 'm-1', thread: 'lambda', text: 'The codeword is amber.' };
    const first = call(env, 'POST', '', message);
    expect(first).toMatchObject({ status: 202, body: { turn: expect.any(String) } });
    expect(call(env, 'POST', '', message)).toEqual(first);
    expect(call(env, 'POST', '', { ...message, text: 'Another.' })).toMatchObject({ status: 409 });
    expect(call(env, 'GET', `?turn=${first.body.turn}`)).toEqual({
      status: 200,
      body: { state: 'completed', reply: 'Noted: The codeword is amber.' },
    });
    expect(call({ ...env, THROUGHLINE_TOKEN: 'tl_wrong' }, 'GET', '?turn=x').body.code).toBe('refused');
    // An agent that is not logged in fails in the same way.
    const failing = call(env, 'POST', '', { id: 'm-2', thread: 'lambda', text: '/fail agent_failed' });
    expect(call(env, 'GET', `?turn=${failing.body.turn}`)).toEqual({
      status: 502,
      body: { state: 'failed', reply: '', code: 'agent_failed', message: 'failed as asked: agent_failed' },
    });
  });
});

describe('the bot', () => {
  interface Posted {
    readonly id: string;
    readonly thread: string;
    readonly text: string;
  }

  /** A chat server that records posted messages. While it is silent, it does not respond to them. */
  async function startChat() {
    const posts: Posted[] = [];
    let isSilent = false;
    const server = createServer(async (request, response) => {
      posts.push((await json(request)) as Posted);
      if (!isSilent) response.end();
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    return {
      url: `http://127.0.0.1:${port}/`,
      posts,
      silence: (silent: boolean) => {
        isSilent = silent;
      },
      close: () => {
        server.closeAllConnections();
        server.close();
      },
    };
  }

  const send = (url: string, id: string, thread: string, text: string) =>
    fetch(url, { method: 'POST', body: JSON.stringify({ id, thread, text }) });

  test('answers a message that it has accepted, also when it is killed before the post is confirmed', async () => {
    const chat = await startChat();
    const start = async () => {
      const bot = new Program('bot.ts', [join(scratch, 'home'), chat.url]);
      return { bot, url: await bot.until(/http:\/\/127\.0\.0\.1:\d+/) };
    };
    try {
      const first = await start();
      expect((await send(first.url, 'm-1', 'thread-7', 'The codeword is amber.')).status).toBe(200);
      expect((await send(first.url, 'm-1', 'thread-7', 'The codeword is amber.')).status).toBe(200);
      for (const wrong of ['{"id":', 'null', '{"id": "m-1", "thread": "thread-7"}']) {
        const refused = await fetch(first.url, { method: 'POST', body: wrong });
        expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining('A message is JSON')]);
      }
      await until('the first answer is posted', () => chat.posts.length > 0);
      expect(chat.posts).toMatchObject([{ thread: 'thread-7', text: 'Noted: The codeword is amber.' }]);

      chat.silence(true); // the bot posts, and gets no response
      expect((await send(first.url, 'm-2', 'thread-7', 'Which codewords have you seen?')).status).toBe(200);
      await until('the second answer is posted', () => chat.posts.length === 2);
      await first.bot.kill();
      chat.silence(false);

      const second = await start();
      await until('the second answer is posted again', () => chat.posts.length === 3);
      expect(chat.posts[2]).toEqual(chat.posts[1]); // the same id: the chat can drop it
      expect(chat.posts[2]).toMatchObject({ thread: 'thread-7', text: 'I have seen these codewords: amber.' });
      expect((await send(second.url, 'm-2', 'thread-7', 'Which codewords have you seen?')).status).toBe(200);
      await second.bot.stop();

      const third = await start(); // nothing is pending any more
      await send(third.url, 'm-3', 'thread-8', 'Which codewords have you seen?');
      await until('the third answer is posted', () => chat.posts.length > 3);
      expect(chat.posts.slice(3)).toMatchObject([{ thread: 'thread-8', text: 'I have seen no codewords.' }]);
      await third.bot.stop();
    } finally {
      chat.close();
    }
  });

  test('tells the person about a turn that a kill interrupted, and does not repeat it', async () => {
    const chat = await startChat();
    try {
      const first = new Program('bot.ts', [join(scratch, 'home'), chat.url]);
      const url = await first.until(/http:\/\/127\.0\.0\.1:\d+/);
      expect((await send(url, 'm-1', 'thread-7', '/slow-tool append log 60000')).status).toBe(200);
      await until('the tool runs', () => globSync('home/sandboxes/*/work/log', { cwd: scratch }).length > 0);
      await first.kill();
      const second = new Program('bot.ts', [join(scratch, 'home'), chat.url]);
      await until('the person is told', () => chat.posts.length > 0);
      expect(chat.posts[0]?.text).toMatch(/^That did not work: /);
      const [log = ''] = globSync('home/sandboxes/*/work/log', { cwd: scratch });
      expect(readFileSync(join(scratch, log), 'utf8').trim().split('\n')).toHaveLength(1);
      await second.stop();
    } finally {
      chat.close();
    }
  });
});
