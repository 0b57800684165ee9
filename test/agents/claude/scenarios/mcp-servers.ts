// MCP servers in the settings of an agent.
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Throughline } from '../../../../src/index.ts';
import { ended, until } from '../../../e2e/support/conversations.ts';
import { sentTo } from '../../../e2e/support/stored.ts';
import { type ClaudeAdapter, ClaudeHome, FIRST } from '../../support/claude-home.ts';
import { startWebNotes } from '../../support/mcp/web-notes.ts';

const PROGRAM = join(import.meta.dirname, '../../support/mcp/notes.ts');
const TOKEN = 'tk-4b1d-of-the-server';
const NOTE = `The note says ${[...TOKEN].reverse().join('')}.`;
const READ = 'model: tool mcp__notes__read {}';
/** Settings of the user. They also allow Claude to start the servers of a project. */
const ALLOWED = { permissions: { allow: ['mcp__notes', 'mcp__web'] }, enableAllProjectMcpServers: true };

/** Claude offers the tools of the servers directly, because the stand-in model does not use its tool search. */
const NO_TOOL_SEARCH = { ENABLE_TOOL_SEARCH: 'false' };

/** A home whose Claude has these MCP servers. */
async function withServers(adapter: ClaudeAdapter, servers: (root: string) => unknown): Promise<ClaudeHome> {
  const home = await ClaudeHome.make(adapter, ALLOWED, NO_TOOL_SEARCH);
  home.settings = { agents: { claude: { ...home.claude, options: { mcpServers: servers(home.path) as never } } } };
  return home;
}

const traceIn = (root: string) => join(root, 'notes.log');

/** A home with one server, which is a program and writes a trace. */
function withNotes(adapter: ClaudeAdapter, more: Record<string, string> = {}): Promise<ClaudeHome> {
  return withServers(adapter, (root) => {
    const env = Object.entries({ TRACE: traceIn(root), TOKEN, ...more }).map(([name, value]) => ({ name, value }));
    return [{ name: 'notes', command: process.execPath, args: [PROGRAM], env }];
  });
}

/** The trace of the server: `started` for every start, `called` for every call of its tool. */
function traceOf({ path }: ClaudeHome): string[] {
  const trace = traceIn(path);
  return existsSync(trace) ? readFileSync(trace, 'utf8').trimEnd().split('\n') : [];
}

/** Runs a turn that reads the note. Returns the rung of its restore, and what the turn added to the trace. */
async function readNote(home: ClaudeHome, tl: Throughline, key = 'chat', restore = {}): Promise<string[]> {
  const before = traceOf(home).length;
  const { receipt } = await tl.conversation(key).ask(READ, { restore });
  expect(home.model.lastRequest()?.messages.at(-1)?.toolResults[0]?.text).toBe(NOTE);
  return [receipt.rung, ...traceOf(home).slice(before)];
}

/** The tests share one conversation with two servers: a program and an HTTP server. */
function inOneConversation(adapter: ClaudeAdapter): void {
  let web: Awaited<ReturnType<typeof startWebNotes>>;
  let home: ClaudeHome;
  let tl: Throughline;
  beforeAll(async () => {
    web = await startWebNotes(`Bearer ${TOKEN}`, NOTE);
    home = await withServers(adapter, (root) => ({
      notes: { command: process.execPath, args: [PROGRAM], env: { TRACE: traceIn(root), TOKEN } },
      web: { type: 'http', url: web.url, headers: { Authorization: `Bearer ${TOKEN}` } },
    }));
    const cwd = home.directory('work');
    const spy = { command: 'touch', args: [join(home.path, 'spied')] };
    writeFileSync(join(cwd, '.mcp.json'), JSON.stringify({ mcpServers: { spy } }));
    tl = await home.open();
    await tl.conversation('chat', { cwd }).ask(FIRST);
  });
  afterAll(async () => {
    await home[Symbol.asyncDispose]();
    await web[Symbol.asyncDispose]();
  });

  test('live, resumed and rewritten sessions have the servers; those of the project are not started', async () => {
    expect(traceOf(home)).toEqual(['started']);
    expect(await readNote(home, tl)).toEqual(['live', 'called']);
    await tl.close();
    tl = await home.open();
    expect(await readNote(home, tl)).toEqual(['resume', 'started', 'called']);
    await tl.close();
    rmSync(join(home.config, 'projects'), { recursive: true });
    tl = await home.open();
    expect(await readNote(home, tl)).toEqual(['rehydrate', 'started', 'called']);
    expect(existsSync(join(home.path, 'spied'))).toBe(false);
  });

  test('an HTTP server gets its headers', async () => {
    await tl.conversation('chat').ask('model: tool mcp__web__read {}');
    expect(home.model.lastRequest()?.messages.at(-1)?.toolResults[0]?.text).toBe(NOTE);
  });

  test('secrets of the servers are in no argument, environment, file or answer', async () => {
    const { turn } = await tl.conversation('chat').ask(READ);
    if (process.platform === 'linux') {
      for (const file of ['cmdline', 'environ']) {
        expect(readFileSync(`/proc/${sentTo(home, turn.id).pid}/${file}`, 'latin1')).not.toContain(TOKEN);
      }
    }
    expect(JSON.stringify(await tl.engine.agents())).not.toContain(TOKEN);
    await tl.close();
    const files = readdirSync(home.path, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
    const paths = files.map(({ parentPath, name }) => join(parentPath, name));
    expect(paths.filter((path) => readFileSync(path, 'latin1').includes(NOTE))).not.toEqual([]);
    expect(paths.filter((path) => readFileSync(path, 'latin1').includes(TOKEN))).toEqual([]);
  });
}

export function mcpServers(adapter: ClaudeAdapter): void {
  describe('in one conversation:', () => inOneConversation(adapter));

  test('a server that does not start fails the turn with the reason, and nothing is sent', async () => {
    await using web = await startWebNotes('Bearer another', NOTE);
    await using home = await withServers(adapter, (root) => ({
      notes: { command: join(root, 'no-such-program'), env: { TOKEN } },
      web: { type: 'http', url: web.url, headers: { Authorization: `Bearer ${TOKEN}` } },
    }));
    const tl = await home.open();
    const { turn } = await tl.conversation('chat').send(FIRST).accepted;
    const { state, failure } = await ended(tl.engine, turn);
    expect({ state, failure }).toMatchObject({ state: 'failed', failure: { code: 'agent_unavailable' } });
    expect(failure?.message).toMatch(/An MCP server did not start\. .*"notes": .*ENOENT/);
    expect(failure?.message).toMatch(/"web": /);
    expect(failure?.message).not.toContain(TOKEN);
    expect(home.model.requests).toEqual([]);
  });
}

/** Scenarios that do not depend on how the adapter passes the servers to Claude. */
export function sessionsWithMcpServers(adapter: ClaudeAdapter): void {
  test('a fork and a replayed session have the servers, and the replay itself starts none', async () => {
    await using home = await withNotes(adapter);
    const tl = await home.open();
    expect(await readNote(home, tl)).toEqual(['new', 'started', 'called']);
    await tl.engine.fork('chat', { turn: 1, key: 'fork' });
    expect(await readNote(home, tl, 'fork')).toEqual(['rehydrate', 'started', 'called']);
    expect(await readNote(home, tl, 'chat', { rebuild: true, rung: 'replay' })).toEqual([
      'replay',
      'started',
      'called',
    ]);
  });

  test('a turn can be cancelled while a slow server starts', async () => {
    await using home = await withNotes(adapter, { SLOW_MS: '600000' });
    const tl = await home.open();
    const { turn } = await tl.conversation('chat').send(FIRST).accepted;
    await until('the server has been started', () => traceOf(home).length > 0);
    await tl.engine.cancel(turn.id);
    expect((await ended(tl.engine, turn)).state).toBe('cancelled');
    expect(home.model.requests).toEqual([]);
  });
}
