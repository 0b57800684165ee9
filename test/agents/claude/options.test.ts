// The options of the agent settings, compared with the types of the Agent SDK, and what Claude does with them.
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { CLAUDE_OPTIONS, HOOK, HOOK_EVENTS, parseClaudeOptions, REFUSED } from '../../../src/agents/claude/settings.ts';
import type { Throughline } from '../../../src/index.ts';
import { faultOf } from '../../values/thrown.ts';
import { claudeOrSkip, findClaude, NOT_INSTALLED } from '../support/claude.ts';
import { type ClaudeAdapter, ClaudeHome, FIRST, SECOND } from '../support/claude-home.ts';

const claude = findClaude();
const supported = Object.keys((CLAUDE_OPTIONS.json.properties ?? {}) as object);

test('every option of the Agent SDK is either supported, or refused by name with a hint', (context) => {
  if (claude === null) return context.skip(NOT_INSTALLED);
  const names = optionsOf(readFileSync(join(dirname(claude.sdk), 'sdk.d.ts'), 'utf8'));
  expect(names).toEqual(expect.arrayContaining(['permissionMode', 'maxTurns', 'spawnClaudeCodeProcess', 'title']));
  expect(names.filter((name) => !supported.includes(name) && !Object.hasOwn(REFUSED, name))).toEqual([]);
  expect(Object.keys(REFUSED).filter((name) => !names.includes(name) || supported.includes(name))).toEqual([]);
  for (const name of Object.keys(REFUSED)) {
    const reason = `"agents.a.options.${name}" is an option of the Agent SDK that Throughline does not take. `;
    const { message = '' } = faultOf(() => parseClaudeOptions('a', { [name]: 1 })) ?? {};
    expect(message).toContain(reason);
    expect(message.slice(message.indexOf(reason) + reason.length), 'the hint').toMatch(/\w/);
  }
});

test('the events of hooks are those of the Agent SDK', (context) => {
  if (claude === null) return context.skip(NOT_INSTALLED);
  const types = readFileSync(join(dirname(claude.sdk), 'sdk.d.ts'), 'utf8');
  const [, events = ''] = /const HOOK_EVENTS: readonly \[(.*?)\]/.exec(types) ?? [];
  expect([...events.matchAll(/'(\w+)'/g)].map(([, name]) => name).toSorted()).toEqual(HOOK_EVENTS.toSorted());
});

test('the fields of a hook are those of the Agent SDK', (context) => {
  if (claude === null) return context.skip(NOT_INSTALLED);
  const types = readFileSync(join(dirname(claude.sdk), 'sdk.d.ts'), 'utf8');
  const [, hooks = ''] = /^ {12}hooks: \(\{$(.*?)^ {12}\}\)\[\];$/ms.exec(types) ?? [];
  const inSdk = hooks
    .split(/^ {12}\} \| \{$/m)
    .map((hook) => [
      /^ {16}type: '(\w+)';$/m.exec(hook)?.[1],
      [...hook.matchAll(/^ {16}(\w+)(\??):/gm)].map(([, name, optional]) => `${name}${optional}`).toSorted(),
    ]);
  const described = HOOK.json.oneOf as { properties: Record<string, { enum?: string[] }>; required: string[] }[];
  const inSettings = described.map(({ properties, required }) => [
    properties.type?.enum?.[0],
    Object.keys(properties)
      .map((name) => (required.includes(name) ? name : `${name}?`))
      .toSorted(),
  ]);
  expect(inSettings).toEqual(inSdk);
});

/** The names of the fields of the type `Options`, without the fields of nested objects. */
function optionsOf(types: string): string[] {
  const [, body = ''] = /^export declare type Options = \{$(.*?)^\}/ms.exec(types) ?? [];
  return [...body.matchAll(/^ {4}(\w+)\??:/gm)].map(([, name = '']) => name);
}

describe.concurrent.each<ClaudeAdapter>(['claude-sdk', 'claude-cli'])('%s', (adapter) => {
  test('the options reach Claude, in a new session and in a resumed one', async (context) => {
    claudeOrSkip(context);
    await using home = await ClaudeHome.make(adapter, {});
    const additional = home.directory('additional');
    const hookLog = join(home.path, 'hook.log');
    writeFileSync(join(additional, 'note.txt'), 'in the additional directory\n');
    const hook = { type: 'command', command: `echo hook >> ${hookLog}` } as const;
    const settings = {
      ...home.claude,
      model: 'claude-opus-4-6',
      options: {
        appendSystemPrompt: 'Speak like a lighthouse keeper.',
        disallowedTools: ['WebFetch'],
        allowedTools: ['Bash(echo:*)'],
        additionalDirectories: [additional],
        effort: 'low',
        agents: { reviewer: { description: 'Reviews a beacon.', prompt: 'Review it.' } },
        hooks: { UserPromptSubmit: [{ hooks: [hook] }] },
      },
    } as const;
    home.settings = { agents: { claude: settings } };
    /** Asks, and checks the request to the model. Returns the rung of the restore. */
    const askAndCheck = async (tl: Throughline, prompt: string, hookRuns: number) => {
      const { receipt } = await tl.conversation('chat').ask(prompt);
      const request = home.model.lastRequest();
      expect(request?.model).toBe('claude-opus-4-6');
      expect(request?.system).toContain('Speak like a lighthouse keeper.');
      expect(request?.tools).toContain('Bash');
      expect(request?.tools).not.toContain('WebFetch');
      expect(request?.raw.output_config).toMatchObject({ effort: 'low' });
      expect(JSON.stringify(request?.raw)).toContain('Reviews a beacon.');
      expect(readFileSync(hookLog, 'utf8')).toBe('hook\n'.repeat(hookRuns));
      return receipt.rung;
    };
    const before = await home.open();
    expect(await askAndCheck(before, FIRST, 1)).toBe('new');
    await before.close();
    const tl = await home.open();
    expect(await askAndCheck(tl, SECOND, 2)).toBe('resume');
    const read = `model: tool! Read ${JSON.stringify({ file_path: join(additional, 'note.txt') })}`;
    expect(await toolResult(home, tl, read)).toContain('in the additional directory');
    expect(await toolResult(home, tl, 'model: tool! Bash {"command":"echo allowed"}')).toContain('allowed');
    expect((await tl.conversation('chat').turns()).at(-1)?.state).toBe('completed');
    expect(await tl.permissions()).toEqual([]);
  });

  test.for([
    { what: 'tools that need no permission', options: { allowedTools: ['Read', 'Bash'] } },
    { what: 'a mode that asks for none', options: { permissionMode: 'bypassPermissions' } },
  ] as const)(
    '$what: a command runs without a question, and nothing is printed about that',
    async ({ options }, context) => {
      claudeOrSkip(context);
      const printed: string[] = [];
      const listen = ({ message }: Error) => printed.push(message);
      process.on('warning', listen);
      context.onTestFinished(() => void process.off('warning', listen));
      // As root, Claude allows that mode only in a sandbox.
      await using home = await ClaudeHome.make(adapter, {}, { IS_SANDBOX: '1' }, options);
      const tl = await home.open();
      const file = join(home.path, 'ran');
      expect(await toolResult(home, tl, `model: tool! Bash {"command":"echo ran | tee ${file}"}`)).toContain('ran');
      expect(readFileSync(file, 'utf8')).toBe('ran\n');
      expect((await tl.conversation('chat').turns()).at(-1)?.state).toBe('completed');
      expect(printed).toEqual([]);
    },
  );

  test('a turn that needs more rounds than maxTurns fails with the reason, and the next turn works', async (context) => {
    claudeOrSkip(context);
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

  test('a replay without tools runs no hook of the options', async (context) => {
    claudeOrSkip(context);
    const hook = { type: 'command', command: 'echo hook >> hook.log' } as const;
    const options = { hooks: { UserPromptSubmit: [{ hooks: [hook] }] } };
    await using home = await ClaudeHome.make(adapter, {}, {}, options);
    const cwd = home.directory('work');
    const tl = await home.open();
    await tl.conversation('chat', { cwd }).ask(FIRST);
    const { receipt } = await tl.conversation('chat').ask(SECOND, { restore: { rebuild: true, rung: 'replay' } });
    expect(receipt).toMatchObject({ rung: 'replay', modelCalls: 1 });
    // Only the two prompts themselves ran the hook.
    expect(readFileSync(join(cwd, 'hook.log'), 'utf8')).toBe('hook\n'.repeat(2));
  });
});

/** Sends a prompt that calls a tool. Returns the result of the tool. */
async function toolResult(home: ClaudeHome, tl: Awaited<ReturnType<ClaudeHome['open']>>, prompt: string) {
  await tl.conversation('chat').ask(prompt);
  return home.model.lastRequest()?.messages.at(-1)?.toolResults[0]?.text;
}
