import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ask, effects, send, TestSandboxes, until } from '../../../test/contracts/agent-sandbox.ts';
import { isAlive } from '../../../test/contracts/liveness.ts';
import type { Agent, AgentEvent, AgentSession } from '../../ports/agent.ts';
import type { OpenSandbox } from '../../ports/sandbox.ts';
import { scriptedAgent } from './adapter.ts';
import type { ScriptedOptions } from './options.ts';

let sandboxes: TestSandboxes;
let sandbox: OpenSandbox;
beforeEach(async () => {
  sandboxes = new TestSandboxes();
  sandbox = await sandboxes.sandbox();
});
afterEach(() => sandboxes.dispose());

const RECALL = 'Which codewords have you seen?';
const agentWith = (options: Partial<ScriptedOptions>) => scriptedAgent({ name: 'scripted', options });
const open = (agent: Agent) => sandboxes.open(agent, sandbox);
const resume = (agent: Agent, session: AgentSession | string, where = sandbox) => {
  const id = typeof session === 'string' ? session : (session.id ?? '');
  return agent.open({
    how: { kind: 'resume', id },
    sandbox: where,
    noTools: false,
    signal: new AbortController().signal,
  });
};
async function resumed(agent: Agent, session: AgentSession): Promise<AgentSession> {
  return sandboxes.open(agent, sandbox, { kind: 'resume', id: session.id ?? '' });
}

describe('ids', () => {
  test('rotating: every prompt changes the id, and each session has the whole context', async () => {
    const agent = agentWith({ ids: 'rotating' });
    const session = await open(agent);
    const ids = new Set([session.id]);
    for (const word of ['amber', 'birch', 'cedar']) {
      const expected = await session.position();
      const { proof } = await ask(session, `The codeword is ${word}.`, { expected });
      expect(proof).toBe('proved');
      ids.add(session.id);
    }
    expect(ids.size).toBe(3);
    await session.kill();
    const again = await resumed(agent, session);
    expect((await ask(again, RECALL)).reply).toContain('amber, birch, cedar');
    expect(again.id).not.toBe(session.id);
  });

  test('a hollow rotation loses everything with every prompt, and the proof shows it', async () => {
    const session = await open(agentWith({ ids: 'rotating', hollowRotation: true }));
    await ask(session, 'The codeword is amber.');
    const { reply, proof } = await ask(session, RECALL, { expected: await session.position() });
    expect(reply).toBe('I have seen no codewords.');
    expect(proof).toBe('refuted');
  });

  test('named late: no id until the first answer, and none for a turn that never answers', async () => {
    const agent = agentWith({ nameLate: true });
    const session = await open(agent);
    expect(session.id).toBeNull();
    expect(await session.position()).toBeNull();
    const { events } = await ask(session, 'Hello');
    expect(events.map(({ type }) => type)).toEqual(['session', 'proof', 'update', 'usage', 'ended']);
    expect(events[0]).toEqual({ type: 'session', id: session.id });
    const silent = await open(agent);
    await ask(silent, '/die');
    expect(silent.id).toBeNull();
  });

  test('assigned: an id that is in use is refused, or its session silently replaced', async () => {
    const how = { kind: 'new', id: 'assigned-by-us' } as const;
    const strict = agentWith({ ids: 'assigned' });
    const first = await sandboxes.open(strict, sandbox, how);
    await ask(first, 'The codeword is amber.');
    await first.close();
    const request = { how, sandbox, noTools: false, signal: new AbortController().signal };
    expect(await strict.open(request)).toMatchObject({ ok: false, reason: 'in_use' });
    const careless = await sandboxes.open(agentWith({ ids: 'assigned', refuseUsedIds: false }), sandbox, how);
    expect((await ask(careless, RECALL)).reply).toBe('I have seen no codewords.');
    expect((await ask(await resumed(strict, first), RECALL)).reply).toBe('I have seen no codewords.');
  });

  test('an agent that issues ids refuses an assigned one; an agent that does not needs one', async () => {
    const request = { sandbox, noTools: false, signal: new AbortController().signal };
    const given = await agentWith({}).open({ how: { kind: 'new', id: 'ours' }, ...request });
    const missing = await agentWith({ ids: 'assigned' }).open({ how: { kind: 'new', id: null }, ...request });
    expect([given.ok, missing.ok]).toEqual([false, false]);
  });
});

describe('forgetting', () => {
  test('memory in the process only: another process has no context', async () => {
    const agent = agentWith({ memory: 'process' });
    expect(await agent.traits(sandbox)).toMatchObject({ resume: false, position: false });
    const session = await open(agent);
    await ask(session, 'The codeword is amber.');
    expect((await ask(session, RECALL)).reply).toContain('amber');
    await session.kill();
    expect(await resume(agent, session)).toMatchObject({ ok: false, reason: 'not_found' });
  });

  test('a hollow resume succeeds at the right position without any context, and the proof refutes it', async () => {
    const agent = agentWith({ resume: 'hollow' });
    const session = await open(agent);
    await ask(session, 'The codeword is amber.');
    const before = await session.position();
    await session.kill();
    const again = await resumed(agent, session);
    expect(await again.position()).toBe(before);
    const { reply, proof } = await ask(again, RECALL, { expected: before });
    expect([reply, proof]).toEqual(['I have seen no codewords.', 'refuted']);
    expect((await resume(agent, 'never-heard-of')).ok).toBe(true);
  });

  test('an agent that cannot resume reports that', async () => {
    const agent = agentWith({ resume: 'none' });
    const session = await open(agent);
    await ask(session, 'Hello');
    expect((await agent.traits(sandbox)).resume).toBe(false);
    expect(await resume(agent, session)).toMatchObject({ ok: false, reason: 'refused' });
  });

  test('tied: the session is found only from its own directory', async () => {
    const dir = join(sandboxes.root, 'shared');
    const tied = agentWith({ tied: true, dir });
    const loose = agentWith({ dir });
    const other = await sandboxes.sandbox();
    for (const [agent, found] of [
      [tied, false],
      [loose, true],
    ] as const) {
      const session = await open(agent);
      await ask(session, 'The codeword is amber.');
      await session.close();
      const elsewhere = await resume(agent, session, other);
      expect(elsewhere.ok).toBe(found);
      expect((await agent.position(session.id ?? '', other)) !== null).toBe(found);
      if (elsewhere.ok) await elsewhere.session.kill();
      expect((await ask(await resumed(agent, session), RECALL)).reply).toContain('amber');
    }
  });

  test('a session whose file was deleted is not found', async () => {
    const agent = agentWith({});
    const session = await open(agent);
    await ask(session, 'Hello');
    await session.kill();
    rmSync(join(sandbox.state, 'scripted'), { recursive: true });
    expect(await agent.position(session.id ?? '', sandbox)).toBeNull();
    expect(await resume(agent, session)).toMatchObject({ ok: false, reason: 'not_found' });
  });
});

describe('refusing', () => {
  test('locked for a while after a turn: neither prompted nor resumed, then both', async () => {
    const agent = agentWith({ lockMs: 600_000 });
    const session = await open(agent);
    await ask(session, 'The codeword is amber.');
    expect((await ask(session, RECALL)).outcome).toMatchObject({ kind: 'failed', code: 'session_locked', again: true });
    await session.close();
    expect(await resume(agent, session)).toMatchObject({ ok: false, reason: 'locked' });
    writeFileSync(join(sandbox.state, 'scripted', `${session.id}.jsonl.lock`), String(Date.now())); // up to now
    expect((await ask(await resumed(agent, session), RECALL)).reply).toContain('amber');
  });

  test('too long: the prompt is refused and not stored', async () => {
    const session = await open(agentWith({ maxPromptTokens: 100 }));
    const { outcome } = await ask(session, `The codeword is amber. ${'x'.repeat(400)}`);
    expect(outcome).toMatchObject({ kind: 'failed', code: 'too_long', again: false });
    expect((await ask(session, RECALL)).reply).toBe('I have seen no codewords.');
  });

  test('an agent that has no profile without tools refuses to open a session with it', async () => {
    const request = {
      how: { kind: 'new', id: null },
      sandbox,
      noTools: true,
      signal: new AbortController().signal,
    } as const;
    expect(await agentWith({ noTools: false }).open(request)).toMatchObject({ ok: false, reason: 'refused' });
  });

  test('the agent cannot read a transcript', async () => {
    const request = { sandbox, noTools: false, signal: new AbortController().signal };
    const opened = await agentWith({}).open({
      how: { kind: 'rehydrate', id: 'one', from: { records: [] } },
      ...request,
    });
    expect(opened).toMatchObject({ ok: false, reason: 'refused' });
  });
});

describe('dying', () => {
  const prompt = randomUUID();
  test('/die: the turn is lost, and the prompt stays in the storage', async () => {
    const agent = agentWith({});
    const session = await open(agent);
    const { outcome, reply } = await ask(session, '/say Half of\n/die', { id: prompt });
    expect(outcome).toMatchObject({ kind: 'lost', message: expect.stringContaining('SIGKILL') });
    expect(reply).toBe('Half of');
    const tail = await agent.tail(session.id ?? '', { prompt, position: null }, sandbox);
    expect(tail?.updates).toMatchObject([{ sessionUpdate: 'agent_message_chunk', content: { text: 'Half of' } }]);
  });

  test('/die after-tool: the tool has had its effect, and the storage has only its beginning', async () => {
    const agent = agentWith({});
    const session = await open(agent);
    const { outcome } = await ask(session, '/die after-tool\n/tool write out.log', { id: prompt });
    expect(outcome.kind).toBe('lost');
    expect(effects(join(sandbox.work, 'out.log'))).toBe(1);
    const tail = await agent.tail(session.id ?? '', { prompt, position: null }, sandbox);
    expect(tail?.updates).toMatchObject([{ sessionUpdate: 'tool_call', status: 'in_progress' }]);
  });

  test('/exit: the message has the exit code and stderr, without control characters', async () => {
    const { outcome } = await ask(await open(agentWith({})), '/stderr\n/exit 7');
    expect(outcome).toEqual({
      kind: 'lost',
      message: 'the agent’s process ended with code 7: a loud complaint',
    });
  });

  test('a program that does not start is unavailable', async () => {
    const agent = scriptedAgent({ name: 'scripted', env: { NODE_OPTIONS: '--no-such-option' } });
    await expect(open(agent)).rejects.toThrow(
      expect.objectContaining({ code: 'agent_unavailable', message: expect.stringContaining('no-such-option') }),
    );
  });

  test('/hang is cancelled; /hang! is killed after the grace period, and also cancelled', async () => {
    for (const [prompt, survives, cancelGraceMs] of [
      ['/say x\n/hang', true, 60_000],
      ['/say x\n/hang!', false, 200],
    ] as const) {
      const session = await open(agentWith({ cancelGraceMs }));
      const abort = new AbortController();
      let last: AgentEvent | undefined;
      for await (const event of send(session, prompt, { signal: abort.signal })) {
        last = event;
        if (event.type === 'update') abort.abort();
      }
      expect(last).toEqual({ type: 'ended', outcome: { kind: 'cancelled' } });
      expect(session.alive).toBe(survives);
    }
  });

  test('closing also ends a program that hangs and survives the end of its input', async () => {
    const session = await open(agentWith({ survives: true }));
    for await (const event of send(session, '/say x\n/hang!')) if (event.type === 'update') await session.close();
    expect(session.alive).toBe(false);
  });

  test('an orphan that survives finishes its turn, with its tools; any other ends with its input', async () => {
    for (const survives of [true, false]) {
      const file = join(sandbox.work, `${survives}.log`);
      const ms = survives ? 100 : 600_000;
      const pid = await orphan({ survives }, `/say x\n/slow-tool a ${file} ${ms}\n/tool b ${file}`);
      await until('it has ended', () => !isAlive(pid));
      expect(effects(file)).toBe(survives ? 2 : 1);
    }
  });

  /** Lets another process prompt an agent and kills that process in the middle of the turn. Returns the agent's pid. */
  async function orphan(options: Partial<ScriptedOptions>, prompt: string): Promise<number> {
    const at = (path: string) => JSON.stringify(new URL(path, import.meta.url).href);
    const script = `
      const { TestSandboxes, send } = await import(${at('../../../test/contracts/agent-sandbox.ts')});
      const { scriptedAgent } = await import(${at('adapter.ts')});
      const sandboxes = new TestSandboxes();
      const agent = scriptedAgent({ name: 'x', options: ${JSON.stringify(options)} });
      const session = await sandboxes.open(agent, await sandboxes.sandbox());
      for await (const event of send(session, ${JSON.stringify(prompt)})) {
        if (event.update?.sessionUpdate === 'tool_call') console.log(JSON.parse(session.process.id).pid + ' ' + sandboxes.root);
      }`;
    const holder = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = (await once(holder.stdout, 'data')) as [Buffer];
    holder.kill('SIGKILL');
    const [pid = '', root = ''] = line.toString().trim().split(' ');
    await until('it has ended', () => !isAlive(Number(pid)));
    rmSync(root, { recursive: true, force: true });
    return Number(pid);
  }
});

describe('noise', () => {
  test('/garbage is ignored, a very long line included; the turn continues', async () => {
    const session = await open(agentWith({}));
    const { outcome, reply } = await ask(session, '/garbage\n/say Still here.');
    expect([outcome.kind, reply]).toEqual(['completed', 'Still here.']);
  });

  test('slow streaming sends one word at a time', async () => {
    const session = await open(agentWith({ chunkMs: 20 }));
    const begun = performance.now();
    const { events, reply } = await ask(session, '/say one two three');
    expect(reply).toBe('one two three');
    expect(events.filter((event) => event.type === 'update')).toHaveLength(3);
    expect(performance.now() - begun).toBeGreaterThan(35);
  });

  test('an abort does not wait for a slow start', async () => {
    const agent = agentWith({ startMs: 300 });
    const begun = performance.now();
    await open(agent);
    expect(performance.now() - begun).toBeGreaterThan(295);
    const slow = agentWith({ startMs: 60_000 });
    const signal = AbortSignal.timeout(100);
    const opened = await slow.open({ how: { kind: 'new', id: null }, sandbox, noTools: false, signal });
    expect(opened).toMatchObject({ ok: false, message: 'opening was cancelled' });
  });

  test('an incomplete last line in the storage is not joined with the next one', async () => {
    const agent = agentWith({});
    const session = await open(agent);
    await ask(session, 'The codeword is amber.');
    await session.kill();
    const { appendFileSync } = process.getBuiltinModule('node:fs');
    appendFileSync(join(sandbox.state, 'scripted', `${session.id}.jsonl`), '{"uuid":"half');
    const again = await resumed(agent, session);
    const { reply, proof } = await ask(again, RECALL, { expected: await again.position() });
    expect([reply, proof]).toEqual(['I have seen these codewords: amber.', 'proved']);
  });
});
