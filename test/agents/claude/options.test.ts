import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { CLAUDE_OPTIONS, HOOK, HOOK_EVENTS, parseClaudeOptions, REFUSED } from '../../../src/agents/claude/settings.ts';
import type { Throughline } from '../../../src/index.ts';
import { faultOf } from '../../values/thrown.ts';
import { findClaude, NOT_INSTALLED } from '../support/claude.ts';
import { type ClaudeAdapter, ClaudeHome, FIRST, SECOND } from '../support/claude-home.ts';

const claude = findClaude();
const ours = Object.keys((CLAUDE_OPTIONS.json.properties ?? {}) as object);

test('every option of the Agent SDK is ours, or refused by its name with what to do', (context) => {
  if (claude === null) return context.skip(NOT_INSTALLED);
  const names = optionsOf(readFileSync(join(dirname(claude.sdk), 'sdk.d.ts'), 'utf8'));
  expect(names).toEqual(expect.arrayContaining(['permissionMode', 'maxTurns', 'spawnClaudeCodeProcess', 'title']));
  expect(names.filter((name) => !ours.includes(name) && !Object.hasOwn(REFUSED, name))).toEqual([]);
  expect(Object.keys(REFUSED).filter((name) => !names.includes(name) || ours.includes(name))).toEqual([]);
  for (const name of Object.keys(REFUSED)) {
    const message = `"agents.a.options.${name}" is an option of the Agent SDK that Throughline does not take. `;
    expect(faultOf(() => parseClaudeOptions('a', { [name]: 1 }))?.message).toContain(message);
  }
});

test('hooks can be set for every event that Claude has, and for no other', (context) => {
  if (claude === null) return context.skip(NOT_INSTALLED);
  const types = readFileSync(join(dirname(claude.sdk), 'sdk.d.ts'), 'utf8');
  const [, events = ''] = /const HOOK_EVENTS: readonly \[(.*?)\]/.exec(types) ?? [];
  expect([...events.matchAll(/'(\w+)'/g)].map(([, name]) => name).toSorted()).toEqual(HOOK_EVENTS.toSorted());
});

test('a hook has the fields that Claude reads, and no others', (context) => {
  if (claude === null) return context.skip(NOT_INSTALLED);
  const types = readFileSync(join(dirname(claude.sdk), 'sdk.d.ts'), 'utf8');
  const [, hooks = ''] = /^ {12}hooks: \(\{$(.*?)^ {12}\}\)\[\];$/ms.exec(types) ?? [];
  const theirs = hooks
    .split(/^ {12}\} \| \{$/m)
    .map((one) => [
      /^ {16}type: '(\w+)';$/m.exec(one)?.[1],
      [...one.matchAll(/^ {16}(\w+)(\??):/gm)].map(([, name, optional]) => `${name}${optional}`).toSorted(),
    ]);
  const described = HOOK.json.oneOf as { properties: Record<string, { enum?: string[] }>; required: string[] }[];
  const own = described.map(({ properties, required }) => [
    properties.type?.enum?.[0],
    Object.keys(properties)
      .map((name) => (required.includes(name) ? name : `${name}?`))
      .toSorted(),
  ]);
  expect(own).toEqual(theirs);
});

/** The names of the fields of the type `Options`, without those of objects in it. */
function optionsOf(types: string): string[] {
  const [, body = ''] = /^export declare type Options = \{$(.*?)^\}/ms.exec(types) ?? [];
  return [...body.matchAll(/^ {4}(\w+)\??:/gm)].map(([, name = '']) => name);
}

describe.skipIf(claude === null).concurrent.each<ClaudeAdapter>(['claude-sdk', 'claude-cli'])('%s', (adapter) => {
  test('what is set reaches Claude, in a new session and in one that is resumed', async () => {
    await using home = await ClaudeHome.make(adapter, {});
    const beside = home.directory('beside');
    const mark = join(home.path, 'hooked');
    writeFileSync(join(beside, 'note.txt'), 'written beside\n');
    const hook = { type: 'command', command: `echo hook >> ${mark}` } as const;
    const settings = {
      ...home.claude,
      model: 'claude-opus-4-6',
      options: {
        appendSystemPrompt: 'Speak like a lighthouse keeper.',
        disallowedTools: ['WebFetch'],
        allowedTools: ['Bash(echo:*)'],
        additionalDirectories: [beside],
        effort: 'low',
        agents: { reviewer: { description: 'Reviews a beacon.', prompt: 'Review it.' } },
        hooks: { UserPromptSubmit: [{ hooks: [hook] }] },
      },
    } as const;
    home.settings = { agents: { claude: settings } };
    const asked = async (tl: Throughline, prompt: string, hooks: number) => {
      const { receipt } = await tl.conversation('chat').ask(prompt);
      const request = home.model.lastRequest();
      const said = JSON.stringify(request?.raw);
      expect(request?.model).toBe('claude-opus-4-6');
      expect(request?.system).toContain('Speak like a lighthouse keeper.');
      expect(request?.tools).toContain('Bash');
      expect(request?.tools).not.toContain('WebFetch');
      expect(request?.raw.output_config).toMatchObject({ effort: 'low' });
      expect(said).toContain('Reviews a beacon.');
      expect(readFileSync(mark, 'utf8')).toBe('hook\n'.repeat(hooks));
      return receipt.rung;
    };
    const before = await home.open();
    expect(await asked(before, FIRST, 1)).toBe('new');
    await before.close();
    const tl = await home.open();
    expect(await asked(tl, SECOND, 2)).toBe('resume');
    const read = `model: tool! Read ${JSON.stringify({ file_path: join(beside, 'note.txt') })}`;
    expect(await toolResult(home, tl, read)).toContain('written beside');
    expect(await toolResult(home, tl, 'model: tool! Bash {"command":"echo allowed"}')).toContain('allowed');
    expect((await tl.conversation('chat').turns()).at(-1)?.state).toBe('completed');
    expect(await tl.permissions()).toEqual([]);
  });

  test('a turn that needs more rounds than maxTurns fails, says why, and the conversation goes on', async () => {
    await using home = await ClaudeHome.make(adapter, { permissions: { allow: ['Bash'] } }, {}, { maxTurns: 2 });
    const tl = await home.open();
    const file = join(home.path, 'lines');
    const line = `model: tool! Bash ${JSON.stringify({ command: `echo line >> ${file}` })}`;
    const failed = await tl
      .conversation('chat')
      .ask([line, line, line, line].join('\n'))
      .then(
        () => null,
        (error: unknown) => error,
      );
    expect(failed).toMatchObject({
      code: 'agent_failed',
      message: 'Reached maximum number of turns (2)',
      hint: expect.stringContaining('maxTurns'),
    });
    expect(readFileSync(file, 'utf8')).toBe('line\nline\n');
    expect((await tl.conversation('chat').ask(FIRST)).turn.state).toBe('completed');
  });

  test('a replay without tools runs no hook of the options', async () => {
    const hook = { type: 'command', command: 'echo hook >> hooked' } as const;
    const options = { hooks: { UserPromptSubmit: [{ hooks: [hook] }] } };
    await using home = await ClaudeHome.make(adapter, {}, {}, options);
    const cwd = home.directory('work');
    const tl = await home.open();
    await tl.conversation('chat', { cwd }).ask(FIRST);
    const { receipt } = await tl.conversation('chat').ask(SECOND, { restore: { rung: 'replay' } });
    expect(receipt).toMatchObject({ rung: 'replay', modelCalls: 1 });
    expect(readFileSync(join(cwd, 'hooked'), 'utf8')).toBe('hook\n'.repeat(2)); // of the two prompts themselves
  });
});

async function toolResult(home: ClaudeHome, tl: Awaited<ReturnType<ClaudeHome['open']>>, prompt: string) {
  await tl.conversation('chat').ask(prompt);
  return home.model.lastRequest()?.messages.at(-1)?.toolResults[0]?.text;
}
