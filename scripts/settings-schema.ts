// Prints throughline.schema.json, which editors use, from the descriptions that check the settings.
import { writeFileSync } from 'node:fs';
import { ACP_OPTIONS } from '../src/agents/acp/options.ts';
import { CLAUDE_OPTIONS } from '../src/agents/claude/settings.ts';
import { SCRIPTED_OPTIONS } from '../src/agents/scripted/options.ts';
import { settingsWith } from '../src/core/input/settings.ts';

export function settingsSchema() {
  const options = {
    scripted: SCRIPTED_OPTIONS,
    'claude-sdk': CLAUDE_OPTIONS,
    'claude-cli': CLAUDE_OPTIONS,
    acp: ACP_OPTIONS,
  };
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'throughline.config.json',
    ...settingsWith(options).json,
  };
}

if (import.meta.main) {
  const file = new URL('../throughline.schema.json', import.meta.url);
  writeFileSync(file, `${JSON.stringify(settingsSchema(), null, 2)}\n`);
}
