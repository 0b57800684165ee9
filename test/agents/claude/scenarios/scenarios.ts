import { describe, test } from 'vitest';
import { findClaude, type InstalledClaude, NOT_INSTALLED } from '../../support/claude.ts';
import type { ClaudeAdapter } from '../../support/claude-home.ts';
import { apiErrors } from './api-errors.ts';
import { byItself } from './by-itself.ts';
import { chosenIds } from './chosen-ids.ts';
import { condensed } from './condensed.ts';
import { contextKept } from './context-kept.ts';
import { crashes } from './crashes.ts';
import { foreignHands } from './foreign-hands.ts';
import { fullDisk } from './full-disk.ts';
import { inATurn } from './in-a-turn.ts';
import { longHistory } from './long-history.ts';
import { mcpServers, sessionsWithMcpServers } from './mcp-servers.ts';
import { oneStorage } from './one-storage.ts';
import { sweep } from './sweep.ts';
import { untaken } from './untaken.ts';
import { whileWarm } from './while-warm.ts';

type Scenarios = (adapter: ClaudeAdapter, claude: InstalledClaude) => void;

/** What depends on how Claude is run: its process, its arguments, its messages, its questions. */
const WITH_EACH: readonly (readonly [name: string, scenarios: Scenarios])[] = [
  ['in a turn', inATurn],
  ['and MCP servers', mcpServers],
];

/**
 * What Claude's files say, what is restored from them, and how its process ends: both adapters use the same code for it
 * (`src/agents/claude/session`, `transcript`). `npm test` tries each with the adapter that is named here, `npm run test:long` with both.
 */
const WITH_ONE: readonly (readonly [name: string, scenarios: Scenarios, adapter: ClaudeAdapter])[] = [
  ['while it is warm', whileWarm, 'claude-sdk'],
  ['and MCP servers of a fork, and slow ones', sessionsWithMcpServers, 'claude-cli'],
  ['after a crash, and in a replay', crashes, 'claude-sdk'],
  ['without a prompt', byItself, 'claude-cli'],
  ['and an id that the caller chose', chosenIds, 'claude-cli'],
  ['and a prompt that it does not take', untaken, 'claude-sdk'],
  ['keeps its context', contextKept, 'claude-cli'],
  ['and a long history', longHistory, 'claude-cli'],
  ['and its own summary', condensed, 'claude-sdk'],
  ['and errors of the API', apiErrors, 'claude-sdk'],
  ['and other users of its session', foreignHands, 'claude-cli'],
  ['and a full disk', fullDisk, 'claude-sdk'],
  ['and its deletion of old transcripts', sweep, 'claude-cli'],
  ['under two names', oneStorage, 'claude-sdk'],
];
const LONG = process.env.THROUGHLINE_LONG === '1';

/** What the real program does with a conversation of ours, however it is run. */
export function claudeScenarios(adapter: ClaudeAdapter): void {
  const claude = findClaude();
  if (claude === null) {
    test(`${adapter} keeps its context`, (context) => context.skip(NOT_INSTALLED));
    return;
  }
  const shared = WITH_ONE.filter(([, , one]) => LONG || one === adapter);
  for (const [name, scenarios] of [...WITH_EACH, ...shared])
    describe(`${adapter} ${name}`, () => scenarios(adapter, claude));
}
