import { expect, test } from 'vitest';
import { start } from '../../../test/contracts/agent-sandbox.ts';
import { acpAgent } from './adapter.ts';
import { ACP_DEFAULTS, parseAcpOptions } from './options.ts';

test('an option that is left out has its default', () => {
  expect(parseAcpOptions()).toEqual(ACP_DEFAULTS);
  expect(parseAcpOptions({ mode: 'plan', window: null })).toEqual({ ...ACP_DEFAULTS, mode: 'plan' });
});

test.each([
  [{ moed: 'plan' }, /"moed" is not an option; the options are agent, mode/],
  [{ mode: 1 }, /"mode" must be a non-empty string/],
  [{ directories: ['relative'] }, /"directories" must be a list of absolute paths/],
  [{ mcpServers: [{}] }, /"mcpServers\[0\]\.name" must be a text/],
  [{ config: { effort: 3 } }, /"config"/],
  [{ window: 0 }, /"window"/],
  [{ noTools: { mode: 'plan' } }, /"noTools" must be an object with "version" and "mode"/],
  [{ quietMs: -1 }, /"quietMs"/],
  [{ quietMs: null }, /"quietMs"/],
])('%j is refused with the reason', (options, why) => {
  expect(() => parseAcpOptions(options)).toThrow(why);
});

test('an agent that is not known by name needs a command', async () => {
  const folders = { installed: '/nowhere', memory: '/nowhere', start };
  expect(() => acpAgent({ name: 'x', options: { agent: 'nobody' }, ...folders })).toThrow(
    /No agent is known by the name/,
  );
  await expect(acpAgent({ name: 'x', ...folders }).traits()).rejects.toMatchObject({
    code: 'agent_unavailable',
    hint: expect.stringContaining('claude-code, codex'),
  });
});
