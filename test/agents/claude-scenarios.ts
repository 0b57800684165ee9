import { describe, test } from 'vitest';
import { findClaude, NOT_INSTALLED } from './claude.ts';
import type { ClaudeAdapter } from './claude-home.ts';
import { apiErrors } from './scenarios/api-errors.ts';
import { byItself } from './scenarios/by-itself.ts';
import { chosenIds } from './scenarios/chosen-ids.ts';
import { condensed } from './scenarios/condensed.ts';
import { contextKept } from './scenarios/context-kept.ts';
import { crashes } from './scenarios/crashes.ts';
import { foreignHands } from './scenarios/foreign-hands.ts';
import { fullDisk } from './scenarios/full-disk.ts';
import { inATurn } from './scenarios/in-a-turn.ts';
import { longHistory } from './scenarios/long-history.ts';
import { mcpServers } from './scenarios/mcp-servers.ts';
import { oneStorage } from './scenarios/one-storage.ts';
import { sweep } from './scenarios/sweep.ts';
import { untaken } from './scenarios/untaken.ts';
import { whileWarm } from './scenarios/while-warm.ts';

/** What the real program does with a conversation of ours, however it is run. */
export function claudeScenarios(adapter: ClaudeAdapter): void {
  const claude = findClaude();
  if (claude === null) {
    test(`${adapter} keeps its context`, (context) => context.skip(NOT_INSTALLED));
    return;
  }
  describe(`${adapter} keeps its context`, () => contextKept(adapter, claude));
  describe(`${adapter} and a long history`, () => longHistory(adapter));
  describe(`${adapter} and its own summary`, () => condensed(adapter, claude));
  describe(`${adapter} while it is warm`, () => whileWarm(adapter, claude));
  describe(`${adapter} after a crash, and in a replay`, () => crashes(adapter));
  describe(`${adapter} and errors of the API`, () => apiErrors(adapter));
  describe(`${adapter} without a prompt`, () => byItself(adapter));
  describe(`${adapter} and other users of its session`, () => foreignHands(adapter, claude));
  describe(`${adapter} and a full disk`, () => fullDisk(adapter));
  describe(`${adapter} and its deletion of old transcripts`, () => sweep(adapter));
  describe(`${adapter} under two names`, () => oneStorage(adapter));
  describe(`${adapter} and an id that the caller chose`, () => chosenIds(adapter));
  describe(`${adapter} in a turn`, () => inATurn(adapter));
  describe(`${adapter} and a prompt that it does not take`, () => untaken(adapter));
  describe(`${adapter} and MCP servers`, () => mcpServers(adapter));
}
