// What a command printed is part of the conversation, in whichever way its agent reports it: in the record, in what `show` prints, and in
// what another agent gets of the turn.
import { expect, test } from 'vitest';
import type { Throughline } from '../../../src/index.ts';
import { codewordsIn } from '../../../src/testing/index.ts';
import { Running } from '../../e2e/cli/process.ts';
import { WHICH_CODEWORDS } from '../../e2e/support/conversations.ts';
import { PROGRAM } from '../../program.ts';
import { bash, codexAcp, execCommand, quickClaudeAcp, smallAgent, whyNotInstalled } from '../support/acp-agents.ts';
import { AcpHome, type MakeSettings } from '../support/acp-home.ts';

type Package = Parameters<typeof whyNotInstalled>[0];
const AGENTS: readonly [string, MakeSettings, Package, (command: string) => string][] = [
  ['codex-acp', codexAcp, '@agentclientprotocol/codex-acp', execCommand],
  ['claude-agent-acp', quickClaudeAcp, '@agentclientprotocol/claude-agent-acp', bash],
];

/** The last tool of the last turn. */
async function lastTool(tl: Throughline) {
  const record = (await tl.conversation('chat').records()).at(-1);
  return record?.parts.findLast((part) => part.type === 'tool');
}

test.for(AGENTS)(
  '%s: what a command printed is stored, shown, and given to the next agent',
  { timeout: 180_000 },
  async ([, settings, packageName, run], context) => {
    const why = whyNotInstalled(packageName);
    if (why !== null) return context.skip(why);
    const small: MakeSettings = (model, root) => smallAgent(model, root, ['without-load']);
    await using home = await AcpHome.make({ agent: settings, small });
    const tl = await home.open();
    const chat = tl.conversation('chat', { cwd: home.directory('work') });
    // The words of the command alone do not contain the codeword.
    const command = "printf 'The codeword is %s%s.\\n' mar ble; sleep 0.3; echo last; echo fault >&2";
    await chat.ask(run(command));
    const tool = await lastTool(tl);
    expect(tool).toMatchObject({ status: 'completed' });
    for (const line of ['The codeword is marble.', 'last', 'fault']) expect(tool?.output).toContain(line);
    expect(tool?.output).not.toContain('exit_code');
    const { reply, receipt } = await chat.ask(WHICH_CODEWORDS, { agent: 'small' });
    expect(receipt).toMatchObject({ rung: 'transcript', carried: 1, leftOut: { outputs: 0 } });
    expect(reply).toContain('marble');
    const request = home.model.lastRequest();
    expect(request && codewordsIn(request)).toEqual(['marble']);

    // A long output keeps its beginning and its end, and the next agent is told that it has only a part.
    await chat.ask(run('seq 1 20000'), { agent: 'agent' });
    const long = (await lastTool(tl))?.output ?? '';
    expect(long).toMatch(/^1\n2\n3\n/);
    expect(long).toMatch(/characters left out/);
    expect(long.length).toBeLessThan(20_000);
    expect((await chat.ask('model: say ok', { agent: 'small' })).receipt.leftOut.outputs).toBe(1);
    await tl.close();

    const env = { PATH: process.env.PATH ?? '', HOME: home.path };
    const shown = await new Running(PROGRAM, ['show', 'chat', '--verbose', '--home', home.path], {
      env,
      cwd: home.path,
    }).ended;
    expect(shown.stdout).toContain('The codeword is marble.');
  },
);
