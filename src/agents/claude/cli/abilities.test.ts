import { expect, test } from 'vitest';
import { abilitiesIn, abilitiesOf } from './abilities.ts';

// Lines of `--help`, as these versions print them.
const HELP_0_2_50 = `  --verbose                       Override verbose mode setting from config
  -p, --print                     Print response and exit (useful for pipes)
  --json                          Output JSON in the shape {cost_usd: number}`;
const HELP_1_0_30 = `  --verbose                       Override verbose mode setting from config
  --output-format <format>        Output format (only works with --print):
  --input-format <format>         Input format (only works with --print):
  -r, --resume [sessionId]        Resume a conversation - provide a session ID
  --model <model>                 Model for the current session. Provide an`;
const HELP_1_0_128 = `${HELP_1_0_30}
  --include-partial-messages      Include partial message chunks as they arrive
  --settings <file-or-json>       Path to a settings JSON file or a JSON string
  --strict-mcp-config             Only use MCP servers from --mcp-config
  --session-id <uuid>             Use a specific session ID for the conversation
  --setting-sources <sources>     Comma-separated list of setting sources`;

test('a version without resume cannot hold a conversation', () => {
  expect(abilitiesIn(HELP_0_2_50, '0.2.50')).toBeNull();
  expect(abilitiesIn('', '0.0.1')).toBeNull();
});

test('a version without the control protocol is used one process a prompt, and issues its ids', () => {
  expect(abilitiesIn(HELP_1_0_30, '1.0.30')).toEqual({
    version: '1.0.30',
    warm: false,
    assignsIds: false,
    partialMessages: false,
    settings: false,
    strictMcp: false,
    noTools: false,
  });
});

test('a version that is warm but knows no --tools has no profile without tools', () => {
  expect(abilitiesIn(HELP_1_0_128, '1.0.128')).toMatchObject({ warm: true, assignsIds: true, noTools: false });
});

test('a version that is known to have everything is not asked', async () => {
  for (const version of ['2.1.325', '3.0.0']) {
    expect(await abilitiesOf(['/no/such/program'], version, '')).toMatchObject({ version, warm: true, noTools: true });
  }
  expect(await abilitiesOf(['/no/such/program'], '2.0.5', '')).toBeNull();
});
