// An agent whose model's API does not answer asks it again for minutes. People see that, with the reason. When the API refuses the login,
// nothing waits.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type ModelRetry, modelRetryIn } from '../../src/core/turn/update.ts';
import type { Throughline } from '../../src/index.ts';
import { Running } from '../e2e/cli/process.ts';
import { PROGRAM } from '../program.ts';
import { codexAcp, quickClaudeAcp, whyNotInstalled } from './support/acp-agents.ts';
import { AcpHome, type MakeSettings } from './support/acp-home.ts';
import { claudeEnvironment, findClaude, NOT_INSTALLED, packageFolder, userHome } from './support/claude.ts';
import { startLocalServer } from './support/local-server.ts';

const notFound = findClaude() === null ? NOT_INSTALLED : null;
const claude =
  (adapter: 'claude-sdk' | 'claude-cli', env: object = {}): MakeSettings =>
  (model, root) => ({
    adapter,
    package: packageFolder,
    env: { ...claudeEnvironment(model, userHome(root)), ...env },
  });

/** Each agent, why it cannot be tested here, whether it counts its retries, and how a person logs in. */
const AGENTS = [
  ['claude-sdk', claude('claude-sdk'), notFound, true, /ANTHROPIC_API_KEY/],
  ['claude-cli', claude('claude-cli'), notFound, true, /ANTHROPIC_API_KEY/],
  [
    'claude-agent-acp',
    quickClaudeAcp,
    whyNotInstalled('@agentclientprotocol/claude-agent-acp'),
    true,
    /ANTHROPIC_API_KEY/,
  ],
  ['codex-acp', codexAcp, whyNotInstalled('@agentclientprotocol/codex-acp'), false, /codex login/],
] as const;

/** Sends a prompt, and cancels it when the agent reports that it will ask its model again. Returns what it reports. */
async function firstRetry(tl: Throughline, prompt: string): Promise<ModelRetry | null> {
  const { events, accepted } = tl.conversation('chat').send(prompt);
  let first: ModelRetry | null = null;
  for await (const event of events) {
    const retry = event.kind === 'turn.update' ? modelRetryIn(event.payload.update) : null;
    if (retry === null || first !== null) continue;
    first = retry;
    await tl.engine.cancel((await accepted).turn.id);
  }
  return first;
}

/** The address of a server that has ended. */
async function deadAddress(): Promise<string> {
  await using server = await startLocalServer(() => {});
  return new URL(server.url).origin;
}

describe.each(AGENTS)('%s', (_, settings, why, counts, howToLogIn) => {
  test('a retry is an event with its reason, when the API is overloaded and when it cannot be reached', {
    timeout: 120_000,
  }, async (context) => {
    if (why !== null) return context.skip(why);
    await using home = await AcpHome.make({ agent: settings });
    const failing = await firstRetry(await home.open(), 'model: fail 529 99 times');
    expect(failing).toMatchObject({ attempt: 1, of: expect.any(Number) });
    if (counts) expect(failing).toMatchObject({ status: 529, reason: 'overloaded', inMs: expect.any(Number) });

    const url = await deadAddress();
    await using alone = await AcpHome.make({ agent: (model, root) => settings({ ...model, url }, root) });
    const unreachable = await firstRetry(await alone.open(), 'Hello');
    expect(unreachable).toMatchObject({ status: null });
    if (counts) expect(unreachable).toMatchObject({ attempt: 1, of: 10, inMs: expect.any(Number) });
  });

  test('when the API refuses the login, the turn fails at once with what to do, and the next one works', {
    timeout: 120_000,
  }, async (context) => {
    if (why !== null) return context.skip(why);
    await using home = await AcpHome.make({ agent: settings });
    const tl = await home.open();
    const chat = tl.conversation('chat');
    const failed = await chat.ask('model: fail 401 99 times').then(
      () => null,
      (error: unknown) => error,
    );
    expect(failed).toMatchObject({ code: 'signed_out', hint: expect.stringMatching(howToLogIn) });
    // Claude alone would ask eleven times, for three minutes. Codex gives up by itself.
    if (counts) {
      expect(String(failed)).toContain('401');
      expect(home.model.requests.filter(({ side }) => !side).length).toBeLessThanOrEqual(3);
    }
    expect((await chat.ask('model: say Back again.')).reply).toBe('Back again.');
  });
});

test('a turn of Codex that its API refuses has failed, with the reason', { timeout: 120_000 }, async (context) => {
  const why = whyNotInstalled('@agentclientprotocol/codex-acp');
  if (why !== null) return context.skip(why);
  await using home = await AcpHome.make({ agent: codexAcp });
  const tl = await home.open();
  const chat = tl.conversation('chat');
  await expect(chat.ask('model: fail 429 99 times')).rejects.toMatchObject({
    code: 'agent_failed',
    message: expect.stringContaining('429 Too Many Requests'),
  });
  const [turn] = await chat.turns();
  expect(turn).toMatchObject({ state: 'failed', reply: '' });
  expect((await chat.ask('model: say Back again.')).reply).toBe('Back again.');
});

test('"send" and "follow" show that the API does not answer', { timeout: 120_000 }, async (context) => {
  if (notFound !== null) return context.skip(notFound);
  const url = await deadAddress();
  const once = { ANTHROPIC_BASE_URL: url, CLAUDE_CODE_MAX_RETRIES: '1' };
  await using home = await AcpHome.make({ agent: claude('claude-cli', once) });
  const config = join(home.path, 'settings.json');
  writeFileSync(config, JSON.stringify(home.settings));
  const env = {
    PATH: process.env.PATH ?? '',
    HOME: home.path,
    THROUGHLINE_HOME: home.path,
    THROUGHLINE_CONFIG: config,
  };
  const run = (...args: string[]) => new Running(PROGRAM, args, { env, cwd: home.path }).ended;
  const shown = /The model’s API does not answer \(attempt 1 of 1, next in 1 s\)/;
  expect((await run('send', 'chat', 'Hello')).stderr).toMatch(shown);
  expect((await run('send', 'chat', 'Hello', '--quiet')).stderr).not.toMatch(shown);
  expect((await run('follow', 'chat', '--until-idle')).stdout).toMatch(shown);
});
