// A conversation moves between several agents. Each gets the turns that it has not seen.
import { expect, test } from 'vitest';
import { conversationOf } from '../../../../src/testing/index.ts';
import { codexAcp, quickClaudeAcp, smallAgent, whyNotInstalled } from '../../support/acp-agents.ts';
import { AcpHome } from '../../support/acp-home.ts';
import { codeword } from '../../support/agent-home.ts';
import { claudeEnvironment, packageFolder, userHome } from '../../support/claude.ts';

const why =
  whyNotInstalled('@agentclientprotocol/codex-acp') ?? whyNotInstalled('@agentclientprotocol/claude-agent-acp');
const claude = (model: { url: string }, root: string) => ({
  adapter: 'claude-sdk',
  package: packageFolder,
  env: claudeEnvironment(model, userHome(root)),
});

test('after each handoff between Claude, Codex and ACP agents, the request has all earlier codewords', {
  timeout: 180_000,
}, async (context) => {
  if (why !== null) return context.skip(why);
  const small = (model: { url: string }, root: string) => smallAgent(model, root, ['without-load']);
  await using home = await AcpHome.make({ claude, codex: codexAcp, small, 'claude-acp': quickClaudeAcp });
  const tl = await home.open();
  const words: string[] = [];
  const ask = async (agent: string, word: string, through = tl) => {
    words.push(word);
    const { receipt } = await through.conversation('chat').ask(codeword(word), { agent });
    home.expectCodewords(...words);
    return receipt;
  };
  expect(await ask('claude', 'amber')).toMatchObject({ rung: 'new', carried: 0 });
  expect(await ask('codex', 'birch')).toMatchObject({ rung: 'transcript', carried: 1, delivered: 1, proof: 'counted' });
  // Claude has the first turn in its session, and gets only the second.
  expect(await ask('claude', 'cedar')).toMatchObject({ rung: 'live', carried: 2, delivered: 1 });
  const request = home.model.lastRequest();
  const [first, , third] = request ? conversationOf(request) : [];
  expect(first?.text).toBe(codeword('amber'));
  expect(third?.text).toContain('birch');
  expect(third?.text).not.toContain('amber');
  expect(await ask('small', 'denim')).toMatchObject({ rung: 'transcript', carried: 3, delivered: 3 });
  expect(await ask('claude-acp', 'ebony')).toMatchObject({ rung: 'transcript', carried: 4, delivered: 4 });
  expect(await ask('codex', 'flint')).toMatchObject({ rung: 'live', carried: 5, delivered: 3 });
  await tl.close();

  // A loaded session must also have the transcript blocks that were sent before its prompts.
  const again = await home.open();
  expect(await ask('codex', 'grape', again)).toMatchObject({ rung: 'resume', delivered: 0, proof: 'consistent' });
  expect(await ask('claude-acp', 'hazel', again)).toMatchObject({ rung: 'resume', delivered: 2, proof: 'consistent' });
});
