// An ACP agent replaces earlier turns by its own summary.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { allEvents } from '../../../e2e/support/conversations.ts';
import { codexAcp, quickClaudeAcp, whyNotInstalled } from '../../support/acp-agents.ts';
import { AcpHome } from '../../support/acp-home.ts';
import { codeword } from '../../support/agent-home.ts';

const LONG = ' lorem ipsum'.repeat(5_500);
const WORDS = ['amber', 'birch', 'cedar', 'denim', 'ebony', 'flint'];
const SHORT = new Set(['amber', 'flint']);
const counts = (carried: number, condensed: number, dropped = 0) => ({ carried, condensed, dropped });

/** The smallest window that Claude accepts. */
function claudeWithSmallWindow(model: { url: string }, root: string) {
  const settings = quickClaudeAcp(model, root);
  const file = join(settings.env.HOME ?? '', '.claude', 'settings.json');
  writeFileSync(file, JSON.stringify({ autoCompactWindow: 100_000 }));
  return settings;
}

function codexWithSmallWindow(model: { url: string }, root: string) {
  const settings = codexAcp(model, root);
  const file = join(settings.env.HOME ?? '', '.codex', 'config.toml');
  writeFileSync(file, `model_auto_compact_token_limit = 50000\n${readFileSync(file, 'utf8')}`);
  return settings;
}

// Both condense in the fifth turn. Codex keeps the newest prompts beside its summary, and the stand-in model's summary of the others
// names no codewords.
test.for([
  ['@agentclientprotocol/claude-agent-acp', claudeWithSmallWindow, WORDS],
  ['@agentclientprotocol/codex-acp', codexWithSmallWindow, WORDS.slice(2)],
] as const)(
  '%s: receipts count condensed turns apart, in a running session and in a loaded one',
  { timeout: 180_000 },
  async ([packageName, settings, remembered], context) => {
    const why = whyNotInstalled(packageName);
    if (why !== null) return context.skip(why);
    await using home = await AcpHome.make({ agent: settings });
    const tl = await home.open();
    const chat = tl.conversation('chat', { cwd: home.directory('work') });
    const receipts = [];
    for (const word of WORDS) {
      receipts.push((await chat.ask(`${codeword(word)}${SHORT.has(word) ? '' : LONG}`)).receipt);
    }
    expect(receipts).toMatchObject([...[0, 1, 2, 3].map((n) => counts(n, 0)), counts(0, 4), counts(1, 4)]);
    // The compaction is recorded, and not as a tool call.
    const updates = (await allEvents(tl.engine, 'chat')).flatMap((one) =>
      one.kind === 'turn.update' ? [one.payload.update.sessionUpdate] : [],
    );
    expect(updates).toContain('compaction_update');
    expect(updates).not.toContain('tool_call');
    await tl.close();
    const again = (await home.open()).conversation('chat');
    const { receipt, reply } = await again.ask('Which codewords have you seen?');
    expect(receipt).toMatchObject({ rung: 'resume', proof: 'consistent', ...counts(2, 4) });
    expect(reply).toBe(`I have seen these codewords: ${remembered.join(', ')}.`);
  },
);
