import { expect, onTestFinished, test } from 'vitest';
import { TestSandboxes } from '../../../test/contracts/agent-sandbox.ts';
import { acpAgent } from './adapter.ts';
import { ACP_DEFAULTS, parseAcpOptions } from './options.ts';

test('an option that is left out has its default', () => {
  expect(parseAcpOptions('a', undefined)).toEqual(ACP_DEFAULTS);
  expect(parseAcpOptions('a', { mode: 'plan', window: null })).toEqual({ ...ACP_DEFAULTS, mode: 'plan' });
});

test.each([
  [{ moed: 'plan' }, /^Settings: "agents\.a\.options\.moed" is not known; known are agent, mode/],
  [{ mode: 1 }, /"agents\.a\.options\.mode" must be a non-empty text, or null, not 1/],
  [{ directories: ['relative'] }, /directories" must be a list of absolute paths/],
  [{ mcpServers: [{}] }, /"agents\.a\.options\.mcpServers\[0\]\.name" must be a non-empty text/],
  [{ config: { effort: 3 } }, /config\.effort" must be/],
  [{ window: 0 }, /window"/],
  [{ noTools: { mode: 'plan' } }, /noTools\.version" must be a non-empty text/],
  [{ quietMs: -1 }, /quietMs"/],
  [{ quietMs: null }, /quietMs"/],
])('%j is refused with the reason', (options, why) => {
  expect(() => parseAcpOptions('a', options)).toThrow(why);
});

test('an agent that is not known by name needs a command', async () => {
  const folders = { installed: '/nowhere', memory: '/nowhere', clock: { now: () => 0, monotonic: () => 0 } };
  expect(() => acpAgent({ name: 'x', options: { agent: 'nobody' }, ...folders })).toThrow(
    /No agent is known by the name/,
  );
  const sandboxes = new TestSandboxes();
  onTestFinished(() => sandboxes.dispose());
  const sandbox = await sandboxes.sandbox();
  await expect(acpAgent({ name: 'x', ...folders }).traits(sandbox)).rejects.toMatchObject({
    code: 'agent_unavailable',
    hint: expect.stringContaining('claude-code, codex'),
  });
});
