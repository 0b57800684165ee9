// Prompts are text, also if they look like a command of the agent.
import { expect, test } from 'vitest';
import { promptText } from '../../../src/core/turn/content.ts';
import { conversationOf } from '../../../src/testing/index.ts';
import { WHICH_CODEWORDS } from '../../e2e/support/conversations.ts';
import { codexAcp, quickClaudeAcp, smallAgent, whyNotInstalled } from '../support/acp-agents.ts';
import { AcpHome, type MakeSettings } from '../support/acp-home.ts';
import { FIRST } from '../support/agent-home.ts';

const PROMPTS = ['/clear', '/compact', '/status', ' /init please', '$5 is too much.', '/etc/hosts has a wrong entry.'];

const AGENTS: readonly [string, MakeSettings, Parameters<typeof whyNotInstalled>[0] | null][] = [
  ['a small agent', (model, root) => smallAgent(model, root, ['complete']), null],
  ['claude-agent-acp', quickClaudeAcp, '@agentclientprotocol/claude-agent-acp'],
  ['codex-acp', codexAcp, '@agentclientprotocol/codex-acp'],
];

test.for(AGENTS)(
  '%s: a prompt that begins with a slash reaches the model as text',
  { timeout: 180_000 },
  async (agent, context) => {
    const [, settings, packageName] = agent;
    const why = packageName === null ? null : whyNotInstalled(packageName);
    if (why !== null) return context.skip(why);
    await using home = await AcpHome.make({ agent: settings });
    const tl = await home.open();
    const chat = tl.conversation('chat', { cwd: home.directory('work') });
    await chat.ask(FIRST);
    for (const prompt of PROMPTS) {
      const before = home.model.requests.length;
      const { reply, turn } = await chat.ask(prompt);
      expect(turn.state).toBe('completed');
      expect(reply, prompt).toMatch(/^Acknowledged [0-9a-f]{12}\.$/);
      const [request] = home.model.requests.slice(before).filter(({ side }) => !side);
      const received = request && conversationOf(request).findLast(({ role }) => role === 'user')?.text;
      expect(received, prompt).toContain(prompt.trim());
      // `told` is what the agent got. The prompt of the turn is unchanged.
      const [told] = (await chat.told()).parts;
      expect(received, prompt).toContain(told?.as === 'prompt' && promptText(told.content).trim());
      expect(promptText(turn.prompt)).toBe(prompt);
    }
    expect((await chat.ask(WHICH_CODEWORDS)).reply).toContain('amber');
    await tl.close();
    const { receipt, reply } = await (await home.open()).conversation('chat').ask(WHICH_CODEWORDS);
    expect(receipt).toMatchObject({ rung: 'resume', proof: 'consistent', carried: PROMPTS.length + 2, condensed: 0 });
    expect(reply).toContain('amber');
  },
);
