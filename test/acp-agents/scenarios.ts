// The scenarios for every agent that speaks ACP, with the agent that THROUGHLINE_ACP_AGENT names.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { acknowledgement } from '../../src/testing/index.ts';
import { acpScenarios } from '../agents/acp/scenarios/scenarios.ts';
import { AcpHome } from '../agents/support/acp-home.ts';
import { FIRST, SECOND } from '../agents/support/agent-home.ts';
import { run } from '../e2e/support/conversations.ts';
import { ACP_AGENTS } from './agents.ts';
import { LIMIT_MS, underTest } from './under-test.ts';

const name = process.env.THROUGHLINE_ACP_AGENT ?? '';
const agent = ACP_AGENTS[name];
if (!agent) throw new Error(`THROUGHLINE_ACP_AGENT must be one of ${Object.keys(ACP_AGENTS).join(', ')}`);
const { settings, storage } = underTest(name, agent);

acpScenarios(underTest(name, agent));

describe(`${name} and the words of a prompt`, { timeout: LIMIT_MS }, () => {
  test('the model gets the exact words of the prompt, also after a history, and the reply is exactly its answer', async () => {
    await using home = await AcpHome.make({ agent: settings });
    const tl = await home.open();
    expect((await tl.conversation('chat').ask(FIRST)).reply).toBe(acknowledgement(FIRST));
    await tl.close();
    rmSync(join(home.homeOf('agent'), storage), { recursive: true });
    const { reply } = await (await home.open()).conversation('chat').ask(SECOND);
    expect(reply).toBe(acknowledgement(SECOND));
    home.expectCodewords('amber', 'birch');
  });

  test('a stream that the API cuts off is not repeated in the reply', async () => {
    await using home = await AcpHome.make({ agent: settings });
    const { engine } = await home.open();
    // With pauses, so that the agent has passed on a part before the stream is cut.
    const { turn, reply } = await run(engine, 'chat', 'model: stream 8 300ms\nmodel: break 1 times');
    // Some agents fail, some let the model continue, and some send the request again.
    expect(reply.split('chunk 1 ').length - 1, `${turn.state}: ${reply}`).toBeLessThanOrEqual(1);
  });

  test('a turn whose answer is never complete fails', async () => {
    await using home = await AcpHome.make({ agent: settings });
    const { engine } = await home.open();
    const { turn, reply } = await run(engine, 'chat', 'model: stream 8 300ms\nmodel: break');
    // One agent lets the model continue where the stream was cut off, and gets a complete answer.
    if (reply.includes('Acknowledged')) expect(turn.state).toBe('completed');
    else expect(turn).toMatchObject({ state: 'failed', failure: { code: 'agent_failed' } });
  });
});
