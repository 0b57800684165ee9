import { describe, test } from 'vitest';
import { findClaude, type InstalledClaude, NOT_INSTALLED } from '../../support/claude.ts';
import type { ClaudeAdapter } from '../../support/claude-home.ts';
import { apiErrors } from './api-errors.ts';
import { chosenIds } from './chosen-ids.ts';
import { cleanup } from './cleanup.ts';
import { condensed } from './condensed.ts';
import { contextKept } from './context-kept.ts';
import { crashes } from './crashes.ts';
import { fileChanges } from './file-changes.ts';
import { foreignHands } from './foreign-hands.ts';
import { fullDisk } from './full-disk.ts';
import { inATurn } from './in-a-turn.ts';
import { longHistory } from './long-history.ts';
import { mcpServers, sessionsWithMcpServers } from './mcp-servers.ts';
import { oneStorage } from './one-storage.ts';
import { stoppedPrompts } from './stopped-prompts.ts';
import { whileWarm } from './while-warm.ts';
import { withoutPrompt } from './without-prompt.ts';

type Scenarios = (adapter: ClaudeAdapter, claude: InstalledClaude) => void;

/** Scenarios that depend on how an adapter runs Claude: its process, arguments, messages and permissions. */
const WITH_EACH: readonly (readonly [name: string, scenarios: Scenarios])[] = [
  ['in a turn:', inATurn],
  ['and files:', fileChanges],
  ['with MCP servers:', mcpServers],
];

/**
 * Scenarios about Claude's files, restores and the end of its process. Both adapters share the code for these
 * (`src/agents/claude/session`, `transcript`). `npm run test:all` runs each with the adapter that is named here, `npm run test:long` with both.
 */
const WITH_ONE: readonly (readonly [name: string, scenarios: Scenarios, adapter: ClaudeAdapter])[] = [
  ['while its process is warm:', whileWarm, 'claude-sdk'],
  ['with MCP servers of a fork, and slow ones:', sessionsWithMcpServers, 'claude-cli'],
  ['after a crash, and in a replay:', crashes, 'claude-sdk'],
  ['without a prompt:', withoutPrompt, 'claude-cli'],
  ['with a session id of the caller:', chosenIds, 'claude-cli'],
  ['with a hook that stops prompts:', stoppedPrompts, 'claude-sdk'],
  ['keeps its context:', contextKept, 'claude-cli'],
  ['with a long history:', longHistory, 'claude-cli'],
  ['with its own summary:', condensed, 'claude-sdk'],
  ['with errors of the API:', apiErrors, 'claude-sdk'],
  ['with other users of its session:', foreignHands, 'claude-cli'],
  ['with a full disk:', fullDisk, 'claude-sdk'],
  ['and deleted or kept transcripts:', cleanup, 'claude-cli'],
  ['under two agent names:', oneStorage, 'claude-sdk'],
];
const LONG = process.env.THROUGHLINE_LONG === '1';

/** All scenarios for one adapter. */
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
