// MCP servers that the settings of an agent name.
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Throughline } from '../../../src/index.ts';
import { ended, until } from '../../e2e/support/conversations.ts';
import { type ClaudeAdapter, ClaudeHome, FIRST } from '../claude-home.ts';
import { startWebNotes } from '../mcp-web-notes.ts';

const PROGRAM = join(import.meta.dirname, '..', 'mcp-notes.ts');
const TOKEN = 'tk-4b1d-of-the-server';
const NOTE = `The note says ${[...TOKEN].reverse().join('')}.`;
const READ = 'model: tool mcp__notes__read {}';
/** What the person allows; also what the project would start by itself, if it were asked. */
const ALLOWED = { permissions: { allow: ['mcp__notes'] }, enableAllProjectMcpServers: true };

/** Claude would offer a tool by which the model finds these; the stand-in looks for none. */
const OFFERED = { ENABLE_TOOL_SEARCH: 'false' };

/** Every start of the server, and every call of its tool. */
function notes(root: string, more: Record<string, string> = {}) {
  const trace = join(root, 'notes.log');
  const env = Object.entries({ TRACE: trace, TOKEN, ...more }).map(([name, value]) => ({ name, value }));
  const server = { name: 'notes', command: process.execPath, args: [PROGRAM], env };
  const happened = () => (existsSync(trace) ? readFileSync(trace, 'utf8').trimEnd().split('\n') : []);
  return { server, happened };
}

async function withServers(adapter: ClaudeAdapter, servers: (root: string) => unknown): Promise<ClaudeHome> {
  const home = await ClaudeHome.make(adapter, ALLOWED, OFFERED);
  home.settings = { agents: { claude: { ...home.claude, options: { mcpServers: servers(home.path) } } } };
  return home;
}

export function mcpServers(adapter: ClaudeAdapter): void {
  test('they are there with every session: new, resumed, put back, forked; a replay without tools starts none', async () => {
    let trace = () => [] as string[];
    await using home = await withServers(adapter, (root) => {
      const { server, happened } = notes(root);
      trace = happened;
      return [server];
    });
    const cwd = home.directory('work');
    const spy = { command: 'touch', args: [join(home.path, 'spied')] };
    writeFileSync(join(cwd, '.mcp.json'), JSON.stringify({ mcpServers: { spy } }));
    /** Reads the note in one more turn, and says what the server saw of it and how the session came about. */
    const reads = async (tl: Throughline, key = 'chat', restore = {}) => {
      const before = trace().length;
      const { receipt } = await tl.conversation(key, { cwd }).ask(READ, { restore });
      expect(
        home.model
          .lastRequest()
          ?.messages.flatMap(({ toolResults }) => toolResults)
          .at(-1)?.text,
      ).toBe(NOTE);
      return [receipt.rung, ...trace().slice(before)];
    };
    const tl = await home.open();
    await tl.conversation('chat', { cwd }).ask(FIRST);
    expect(trace()).toEqual(['started']);
    expect(await reads(tl)).toEqual(['live', 'called']);
    await tl.close();
    const again = await home.open();
    expect(await reads(again)).toEqual(['resume', 'started', 'called']);
    await again.engine.fork('chat', { turn: 2, key: 'fork' });
    expect(await reads(again, 'fork')).toEqual(['rehydrate', 'started', 'called']);
    await again.close();
    rmSync(join(home.config, 'projects'), { recursive: true });
    const last = await home.open();
    expect(await reads(last)).toEqual(['rehydrate', 'started', 'called']);
    expect(await reads(last, 'chat', { rung: 'replay' })).toEqual(['replay', 'started', 'called']);
    expect(existsSync(join(home.path, 'spied'))).toBe(false);
  });

  test('their secrets are neither in the arguments and the environment of Claude, nor in any file or answer of ours', async () => {
    await using home = await withServers(adapter, (root) => [notes(root).server]);
    const tl = await home.open();
    const { turn } = await tl.conversation('chat').ask(READ);
    if (process.platform === 'linux') {
      for (const what of ['cmdline', 'environ']) {
        expect(readFileSync(`/proc/${turn.sent?.process?.pid}/${what}`, 'latin1')).not.toContain(TOKEN);
      }
    }
    expect(JSON.stringify(await tl.engine.agents())).not.toContain(TOKEN);
    await tl.close();
    const files = readdirSync(home.path, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
    const paths = files.map(({ parentPath, name }) => join(parentPath, name));
    expect(paths.filter((path) => readFileSync(path, 'latin1').includes(NOTE))).not.toEqual([]);
    expect(paths.filter((path) => readFileSync(path, 'latin1').includes(TOKEN))).toEqual([]);
  });

  test('a server at an address is given its headers', async () => {
    await using web = await startWebNotes(`Bearer ${TOKEN}`, NOTE);
    await using home = await withServers(adapter, () => ({
      notes: { type: 'http', url: web.url, headers: { Authorization: `Bearer ${TOKEN}` } },
    }));
    const tl = await home.open();
    await tl.conversation('chat').ask(READ);
    expect(home.model.lastRequest()?.messages.at(-1)?.toolResults[0]?.text).toBe(NOTE);
  });

  test('one that does not come up fails the turn with the reason, and nothing is sent', async () => {
    await using web = await startWebNotes('Bearer another', NOTE);
    await using home = await withServers(adapter, (root) => ({
      notes: { command: join(root, 'no-such-program'), env: { TOKEN } },
      web: { type: 'http', url: web.url, headers: { Authorization: `Bearer ${TOKEN}` } },
    }));
    const tl = await home.open();
    const { turn } = await tl.conversation('chat').send(FIRST).accepted;
    const { state, failure } = await ended(tl.engine, turn);
    expect({ state, failure }).toMatchObject({ state: 'failed', failure: { code: 'agent_unavailable' } });
    expect(failure?.message).toMatch(/did not come up\. .*"notes": .*ENOENT/);
    expect(failure?.message).toMatch(/"web": /);
    expect(failure?.message).not.toContain(TOKEN);
    expect(home.model.requests).toEqual([]);
  });

  test('one that is slow to come up does not keep a turn from being cancelled', async () => {
    let trace = () => [] as string[];
    await using home = await withServers(adapter, (root) => {
      const { server, happened } = notes(root, { SLOW_MS: '600000' });
      trace = happened;
      return [server];
    });
    const tl = await home.open();
    const { turn } = await tl.conversation('chat').send(FIRST).accepted;
    await until('the server is being waited for', () => trace().length > 0);
    await tl.engine.cancel(turn.id);
    expect((await ended(tl.engine, turn)).state).toBe('cancelled');
    expect(home.model.requests).toEqual([]);
  });
}
