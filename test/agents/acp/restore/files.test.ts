// Files and images in prompts, with real agents: after a load, and after a handoff to another agent.
import { expect, test } from 'vitest';
import { bash, codexAcp, quickClaudeAcp, smallAgent, whyNotInstalled } from '../../support/acp-agents.ts';
import { AcpHome } from '../../support/acp-home.ts';
import { codeword } from '../../support/agent-home.ts';
import { claudeEnvironment, packageFolder, userHome } from '../../support/claude.ts';

/** A picture of one pixel. */
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
  '%s still has the files and images after a load, and the receipt proves it',
  { timeout: 120_000 },
  async ([, settings, packageName], context) => {
    const why = whyNotInstalled(packageName);
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

test('after a handoff the other agent gets the files and images, and still has them after a load', {
  timeout: 120_000,
}, async (context) => {
  const why =
    whyNotInstalled('@agentclientprotocol/codex-acp') ?? whyNotInstalled('@agentclientprotocol/claude-agent-acp');
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

test('a transcript that we write for Claude has files, images, the output of tools, and a shortened prompt', {
  timeout: 120_000,
}, async (context) => {
  const why = whyNotInstalled('@agentclientprotocol/claude-agent-acp');
  if (why !== null) return context.skip(why);
  const behaviour = JSON.stringify({ embeddedContext: true, image: true });
  await using home = await AcpHome.make({
    small: (model, root) => smallAgent(model, root, ['complete', behaviour]),
    claude: (model, root) => ({
      adapter: 'claude-sdk',
      package: packageFolder,
      env: claudeEnvironment(model, userHome(root)),
    }),
  });
  const tl = await home.open();
  const chat = tl.conversation('chat', { agent: 'small' });
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
