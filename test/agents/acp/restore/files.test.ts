// Files and images in prompts, with real agents: they are still there after a load, and go along to another agent.
import { expect, test } from 'vitest';
import { codexAcp, missing, ownAgent, quickClaudeAcp } from '../../support/acp-agents.ts';
import { AcpHome } from '../../support/acp-home.ts';
import { codeword } from '../../support/agent-home.ts';
import { claudeEnvironment, packageFolder, userHome } from '../../support/claude.ts';
import { bash } from '../contract/contract.ts';

/** A picture of one point. */
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const PROMPT = [
  { type: 'text', text: codeword('amber') },
  { type: 'resource', resource: { uri: 'file:///notes.txt', text: codeword('birch'), mimeType: 'text/plain' } },
  { type: 'image', data: PNG, mimeType: 'image/png' },
] as const;

test.for([
  ['claude-agent-acp', quickClaudeAcp, '@agentclientprotocol/claude-agent-acp'],
  ['codex-acp', codexAcp, '@agentclientprotocol/codex-acp'],
] as const)(
  '%s has them after it was loaded, and we see that',
  { timeout: 120_000 },
  async ([, settings, name], context) => {
    const why = missing(name);
    if (why !== null) return context.skip(why);
    await using home = await AcpHome.make({ agent: settings });
    const tl = await home.open();
    await tl.conversation('chat').ask(PROMPT);
    home.expectCodewords('amber', 'birch');
    await tl.close();
    const again = await home.open();
    const { receipt } = await again.conversation('chat').ask(codeword('cedar'));
    expect(receipt).toMatchObject({ rung: 'resume', proof: 'consistent', carried: 1, tried: [] });
    home.expectCodewords('amber', 'birch', 'cedar');
    expect(JSON.stringify(home.model.lastRequest()?.raw)).toContain(PNG);
  },
);

test('another agent gets them with the turns that it missed, and has them after a load', {
  timeout: 120_000,
}, async (context) => {
  const why = missing('@agentclientprotocol/codex-acp') ?? missing('@agentclientprotocol/claude-agent-acp');
  if (why !== null) return context.skip(why);
  await using home = await AcpHome.make({ codex: codexAcp, claude: quickClaudeAcp });
  const tl = await home.open();
  await tl.conversation('chat').ask(PROMPT, { agent: 'codex' });
  for (const [word, agent] of [
    ['cedar', 'claude'],
    ['denim', 'codex'],
  ] as const) {
    const { receipt } = await tl.conversation('chat').ask(codeword(word), { agent });
    expect(receipt).toMatchObject({ dropped: 0, shortened: 0, leftOut: { images: 0 } });
    expect(JSON.stringify(home.model.lastRequest()?.raw)).toContain(PNG);
  }
  home.expectCodewords('amber', 'birch', 'cedar', 'denim');
  await tl.close();
  const again = await home.open();
  const { receipt } = await again.conversation('chat').ask(codeword('ebony'), { agent: 'claude' });
  expect(receipt).toMatchObject({ rung: 'resume', proof: 'consistent', dropped: 0 });
  expect(JSON.stringify(home.model.lastRequest()?.raw)).toContain(PNG);
});

test('Claude gets them in a transcript made from records, with what tools printed and a prompt that does not fit', {
  timeout: 120_000,
}, async (context) => {
  const why = missing('@agentclientprotocol/claude-agent-acp');
  if (why !== null) return context.skip(why);
  const behaviour = JSON.stringify({ embeddedContext: true, image: true });
  await using home = await AcpHome.make({
    own: (model, root) => ownAgent(model, root, ['honest', behaviour]),
    claude: (model, root) => ({
      adapter: 'claude-sdk',
      package: packageFolder,
      env: claudeEnvironment(model, userHome(root)),
    }),
  });
  const tl = await home.open();
  const chat = tl.conversation('chat', { agent: 'own' });
  await chat.ask(PROMPT);
  await chat.ask(bash('echo printed-by-a-tool'));
  await chat.ask(`${codeword('cedar')} ${'x'.repeat(4_000_000)} ${codeword('denim')}`);
  const { receipt } = await chat.ask(codeword('ebony'), { agent: 'claude' });
  expect(receipt).toMatchObject({ rung: 'rehydrate', carried: 3, dropped: 0, shortened: 1, leftOut: { images: 0 } });
  home.expectCodewords('amber', 'birch', 'cedar', 'denim', 'ebony');
  const request = JSON.stringify(home.model.lastRequest()?.raw);
  expect(request).toContain(PNG);
  expect(request).toContain('printed-by-a-tool\\n');
  expect(request).toMatch(/\[… 3\d{6} characters left out …\]/);
});
