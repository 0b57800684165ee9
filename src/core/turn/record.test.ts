import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parts as anyParts, text } from '../../../test/values/arbitrary.ts';
import { mergeParts, PartsBuilder, type RecordPart, replyText, type ToolPart } from './record.ts';
import { byteLength } from './shorten.ts';
import { RETRACTED, type ToolStatus, type Update } from './update.ts';

const chunk = (kind: 'message' | 'thought', value: string): Update => ({
  sessionUpdate: `agent_${kind}_chunk` as 'agent_message_chunk',
  content: { type: 'text', text: value },
});
const tool = (id: string, status?: ToolStatus): Extract<Update, { sessionUpdate: 'tool_call_update' }> => ({
  sessionUpdate: 'tool_call_update',
  toolCallId: id,
  ...(status === undefined ? {} : { status }),
});

function built(updates: readonly Update[]): PartsBuilder {
  const builder = new PartsBuilder();
  for (const update of updates) builder.add(update);
  return builder;
}

const update: fc.Arbitrary<Update> = fc.oneof(
  fc.tuple(fc.constantFrom('message' as const, 'thought' as const), text).map(([kind, value]) => chunk(kind, value)),
  fc
    .tuple(fc.constantFrom('1', '2'), fc.constantFrom<ToolStatus>('pending', 'in_progress', 'completed', 'failed'))
    .map(([id, status]) => tool(id, status)),
  fc.constant<Update>({ sessionUpdate: 'plan', entries: [] }),
);

describe('parts', () => {
  test('do not depend on where the stream was cut into chunks', () => {
    fc.assert(
      fc.property(fc.array(update), fc.array(fc.nat(20)), (updates, cuts) => {
        expect(built(cutUp(updates, cuts)).parts()).toEqual(built(updates).parts());
      }),
      { numRuns: 1_000 },
    );
  });

  test('keep all text in order, and the order of tools among it', () => {
    fc.assert(
      fc.property(fc.array(update), (updates) => {
        const said = (parts: readonly RecordPart[], type: string) =>
          parts.map((part) => (part.type === type && 'text' in part ? part.text : '')).join('');
        const told = (kind: string) =>
          updates.map((one) => (one.sessionUpdate === kind ? (one as { content: { text: string } }).content.text : ''));
        const parts = built(updates).parts();
        expect(said(parts, 'text')).toBe(told('agent_message_chunk').join(''));
        expect(said(parts, 'thought')).toBe(told('agent_thought_chunk').join(''));
      }),
    );
  });

  test('leave out retracted text, and join the texts around it', () => {
    const said = (value: string, messageId: string): Update => ({ ...chunk('message', value), messageId }) as Update;
    const retract = (messageId: string): Update => ({ sessionUpdate: RETRACTED, messageId });
    const thought = { ...chunk('thought', 'hm'), messageId: 'b' } as Update;
    const updates = [said('One. ', 'a'), thought, said('Two', 'c'), retract('b'), retract('c'), said('Two.', 'd')];
    expect(built(updates).parts()).toEqual([{ type: 'text', text: 'One. Two.' }]);
    expect(built([...updates, retract('a'), retract('d')]).parts()).toEqual([]);
    expect(built([chunk('message', 'no id'), { sessionUpdate: RETRACTED }]).parts()).toHaveLength(1);
  });

  test('have one entry per tool, however often it is updated, with all that was reported', () => {
    const builder = built([
      { sessionUpdate: 'tool_call', toolCallId: '1', title: 'edit', kind: 'edit', locations: [{ path: 'door.ts' }] },
      { ...tool('1', 'in_progress'), rawInput: { line: 4 } },
      { ...tool('1', 'completed'), content: [{ type: 'content', content: { type: 'text', text: 'ok' } }] },
      tool('1'),
    ]);
    const done: ToolPart = {
      type: 'tool',
      id: '1',
      name: 'edit',
      kind: 'edit',
      target: 'door.ts',
      input: { line: 4 },
      output: 'ok',
      status: 'completed',
    };
    expect(builder.parts()).toEqual([done]);
  });

  test('call the end of a tool unknown until it is reported', () => {
    expect(built([tool('1', 'in_progress')]).parts()).toMatchObject([{ status: 'unknown' }]);
    expect(built([tool('1', 'pending')]).toolBegun).toBe(true);
    expect(built([chunk('message', 'a')]).toolBegun).toBe(false);
  });

  test('have what an agent sends of an output in pieces, beside its content', () => {
    const printed = (data: string) => ({ _meta: { terminal_output_delta: { terminal_id: 't', data } } });
    const ended = { status: 'completed', _meta: { terminal_exit: { terminal_id: 't', exit_code: 0 } } };
    const text = (words: string) => ({ content: [{ type: 'content', content: { type: 'text', text: words } }] });
    const outputOf = (...updates: object[]) => {
      const parts = new PartsBuilder();
      for (const fields of updates) {
        parts.add({ sessionUpdate: 'tool_call_update', toolCallId: 't', ...fields } as Update);
      }
      return (parts.parts()[0] as ToolPart).output;
    };
    const terminal = { content: [{ type: 'terminal', terminalId: 't' }] };
    expect(outputOf(terminal)).toBeNull();
    expect(outputOf(terminal, ended)).toBe('');
    expect(outputOf(terminal, printed('a\n'), printed('b\n'), ended)).toBe('a\nb\n');
    expect(outputOf({ _meta: { terminal_output: { data: 'a' } } })).toBe('a');
    // The exit code is no output.
    expect(outputOf(printed('a'), { rawOutput: { exit_code: 0 } })).toBe('a');
    expect(outputOf(text('Allowed.'), printed('a'))).toBe('Allowed.\na');
    // Content replaces everything before it.
    expect(outputOf(printed('a'), text('all of it'))).toBe('all of it');
    expect(byteLength(outputOf(...Array.from({ length: 50 }, () => printed('x'.repeat(9_999)))) ?? '')).toBe(16_384);
    // A value of the wrong type is ignored.
    expect(outputOf({ _meta: { terminal_output_delta: { data: 5 } } }, { _meta: [] }, { _meta: null })).toBeNull();
  });

  test('of a long output keep the beginning and the end, and count the rest', () => {
    const long = { ...tool('1', 'completed'), rawOutput: `begin ${'x'.repeat(20_000)} end` };
    const [part] = built([long]).parts() as [ToolPart];
    expect(byteLength(part.output ?? '')).toBeLessThanOrEqual(16_384);
    expect(part.output).toMatch(/^begin x+\n\[… 36\d\d characters left out …\]\nx+ end$/);
  });

  test('keep the changes of files as lines, and name images', () => {
    const content = [
      { type: 'diff', path: 'a.ts', oldText: 'one\ntwo\nthree', newText: 'one\n2\n2b\nthree' },
      { type: 'diff', path: 'new.ts', oldText: null, newText: 'first' },
      { type: 'content', content: { type: 'image', mimeType: 'image/png', data: 'AAAA' } },
      { type: 'diff', path: 'gone.ts' },
    ];
    const [part] = built([{ ...tool('1', 'completed'), content, rawOutput: { more: 1 } }]).parts() as [ToolPart];
    expect(part.output?.split('\n')).toEqual([
      ...['[diff a.ts, line 2]', '-two', '+2', '+2b'],
      ...['[diff new.ts, line 1]', '+first'],
      '[image image/png]',
    ]);
    expect(part.diffs).toEqual([
      { path: 'a.ts', oldText: 'one\ntwo\nthree', newText: 'one\n2\n2b\nthree', lines: [1, 1] },
      { path: 'new.ts', oldText: null, newText: 'first', lines: [1, 1] },
    ]);
  });

  test('keep a few lines around a change, and know their numbers', () => {
    const lines = Array.from({ length: 20 }, (_, n) => `${n + 1}`);
    const content = [{ type: 'diff', path: 'a', oldText: lines.join('\n'), newText: lines.with(9, 'ten').join('\n') }];
    const begun = { ...tool('1', 'in_progress'), content };
    const [part] = built([begun, { ...tool('1', 'completed') }]).parts() as [ToolPart];
    const [oldText, newText] = ['7\n8\n9\n10\n11\n12\n13', '7\n8\n9\nten\n11\n12\n13'];
    expect(part).toMatchObject({
      output: '[diff a, line 10]\n-10\n+ten',
      diffs: [{ oldText, newText, lines: [7, 7] }],
    });
    // Content replaces everything that was reported before it.
    const failed = { ...tool('1', 'failed'), content: [{ type: 'content', content: { type: 'text', text: 'no' } }] };
    expect(built([begun, failed]).parts()[0]).not.toHaveProperty('diffs');
  });

  test('keep so much of all changes of a tool, and no half of one', () => {
    const long = (char: string) => `${char.repeat(99)}\n`.repeat(200);
    const diff = (path: string, oldText: string | null, newText: string) => ({ type: 'diff', path, oldText, newText });
    const content = [
      diff('a', 'x', 'y'),
      diff('b', long('x'), long('y')),
      diff('c', null, long('z').repeat(2)),
      diff('d', null, 'z'),
    ];
    const [part] = built([{ ...tool('1', 'completed'), content }]).parts() as [ToolPart];
    const [a, b, c, d] = part.diffs ?? [];
    expect(a).toEqual({ path: 'a', oldText: 'x', newText: 'y', lines: [1, 1] });
    expect(b).toEqual({ path: 'b', oldText: '', newText: '', lines: [1, 1], cut: true });
    expect(c).toMatchObject({ oldText: null, cut: true });
    expect(c?.newText).toMatch(/^(?:z{99}\n){327}$/);
    expect(d).toEqual({ path: 'd', oldText: null, newText: 'z', lines: [1, 1] });
  });

  test('show what a tool works on in one line: its path, otherwise its command or similar', () => {
    const targets = (fields: object) => {
      const builder = new PartsBuilder();
      builder.add({ sessionUpdate: 'tool_call', toolCallId: 't', ...fields });
      return builder.parts().map((part) => part.type === 'tool' && part.target);
    };
    expect(targets({ locations: [{ path: 'a.ts' }], rawInput: { command: 'ls' } })).toEqual(['a.ts']);
    expect(targets({ rawInput: { command: 'echo 1 &&\n  echo 2' } })).toEqual(['echo 1 && echo 2']);
    expect(targets({ rawInput: { command: 7, path: 'b' } })).toEqual(['b']);
    expect(targets({ rawInput: 'ls' })).toEqual([null]);
    expect(targets({ rawInput: { command: 'x'.repeat(500) } })[0]).toHaveLength(201);
  });

  test('keep the last title that the agent offered', () => {
    const titled = (title: string | null): Update => ({ sessionUpdate: 'session_info_update', title });
    expect(built([titled('One'), titled(' Two '), titled(''), titled(null)]).title).toBe('Two');
    expect(built([]).title).toBeNull();
    expect(built([titled('One\u001b[2J\nline'), titled('\u0007')]).title).toBe('One line');
    expect(built([titled('x'.repeat(9_999))]).title).toHaveLength(512);
  });
});

describe('the parts of the stream, merged with those of the storage', () => {
  const only = (id: string, status: ToolPart['status']): ToolPart => ({
    type: 'tool',
    id,
    name: 'x',
    kind: 'other',
    target: null,
    input: null,
    output: null,
    status,
  });

  test('has the longer answer', () => {
    const [short, long] = [{ type: 'text', text: 'Hel' } as const, { type: 'text', text: 'Hello' } as const];
    expect(mergeParts([short], [long])).toEqual([long]);
    expect(mergeParts([long], [short])).toEqual([long]);
  });

  test('keeps thoughts and tools that were seen, when the storage has no more of the answer', () => {
    const seen = [{ type: 'thought', text: 'Hm.' } as const, only('1', 'unknown')];
    expect(mergeParts(seen, [])).toEqual(seen);
    expect(mergeParts(seen, [only('1', 'failed')])).toEqual([seen[0], only('1', 'failed')]);
  });

  test('has every tool of both once, with its end if either has one', () => {
    const merged = mergeParts(
      [only('1', 'unknown'), only('2', 'completed')],
      [only('1', 'failed'), only('3', 'unknown')],
    );
    expect(merged).toHaveLength(3);
    expect(new Set(merged)).toEqual(new Set([only('1', 'failed'), only('2', 'completed'), only('3', 'unknown')]));
  });

  test('loses no tool, no known end and no text, for any two streams', () => {
    fc.assert(
      fc.property(anyParts, anyParts, (seen, found) => {
        const merged = mergeParts(seen, found);
        const tools = (parts: readonly RecordPart[]) => parts.filter((part) => part.type === 'tool');
        const ids = new Set([...tools(seen), ...tools(found)].map((part) => part.id));
        expect(new Set(tools(merged).map((part) => part.id))).toEqual(ids);
        expect(tools(merged)).toHaveLength(ids.size);
        expect(replyText(merged).length).toBe(Math.max(replyText(seen).length, replyText(found).length));
      }),
    );
  });

  test('merged with itself or with nothing, stay the same', () => {
    fc.assert(
      fc.property(anyParts, (parts) => {
        expect(mergeParts(parts, parts)).toEqual(parts);
        expect(mergeParts(parts, [])).toEqual(parts);
      }),
    );
  });
});

/** The same stream, with its texts split at different places. */
function cutUp(updates: readonly Update[], cuts: readonly number[]): Update[] {
  let next = 0;
  return updates.flatMap((one) => {
    if (one.sessionUpdate !== 'agent_message_chunk' && one.sessionUpdate !== 'agent_thought_chunk') return [one];
    const { text: whole = '' } = one.content as { text?: string };
    const at = cuts[next++ % Math.max(1, cuts.length)] ?? 0;
    const kind = one.sessionUpdate === 'agent_message_chunk' ? 'message' : 'thought';
    return [chunk(kind, whole.slice(0, at)), chunk(kind, whole.slice(at))];
  });
}

describe('a summary that the agent makes of what came before', () => {
  const text = (content: string): Update => ({
    sessionUpdate: 'agent_message_chunk',
    content: { type: 'text', text: content },
  });
  const compaction = (status: string, compactionId?: string): Update => ({
    sessionUpdate: 'compaction_update',
    status,
    ...(compactionId === undefined ? {} : { compactionId }),
  });

  test.each<[string, Update[], 'before' | 'turn' | null]>([
    ['there is none', [text('Hi.')], null],
    ['it failed', [compaction('in_progress'), compaction('failed'), text('Hi.')], null],
    ['it was made before the answer', [compaction('completed'), text('Hi.')], 'before'],
    ['it was made within the answer', [text('Hi.'), compaction('completed'), text('Ho.')], 'turn'],
    ['there were two', [compaction('completed', 'a'), text('Hi.'), compaction('completed', 'b')], 'turn'],
    ['its end came twice', [compaction('completed', 'a'), text('Hi.'), compaction('completed', 'a')], 'before'],
  ])('%s', (_, updates, condensed) => {
    const parts = new PartsBuilder();
    for (const update of updates) parts.add(update);
    expect(parts.condensed).toBe(condensed);
  });
});

describe('the duration of a tool', () => {
  const call = (toolCallId: string, status: 'pending' | 'completed' | 'failed') =>
    ({ sessionUpdate: 'tool_call_update', toolCallId, title: 'run', status }) as const;

  test('is the time between its first update and its end', () => {
    const parts = new PartsBuilder();
    parts.add(call('a', 'pending'), 1_000);
    parts.add(call('a', 'completed'), 1_250.4);
    parts.add(call('a', 'completed'), 9_000);
    expect(parts.parts()).toMatchObject([{ status: 'completed', ms: 250 }]);
  });

  test('is unknown if the tool is seen only once, or without a clock', () => {
    const parts = new PartsBuilder();
    parts.add(call('a', 'completed'), 1_000);
    parts.add(call('b', 'pending'));
    parts.add(call('b', 'failed'));
    for (const part of parts.parts()) expect(part).not.toHaveProperty('ms');
  });

  test('is kept when the storage has more of the answer', () => {
    const tool = {
      type: 'tool',
      id: 'a',
      name: 'run',
      kind: 'other',
      target: null,
      input: null,
      output: null,
    } as const;
    const found = [
      { ...tool, status: 'completed' },
      { type: 'text', text: 'done' },
    ] as const;
    expect(mergeParts([{ ...tool, status: 'completed', ms: 7 }], found)[0]).toMatchObject({ ms: 7 });
  });
});
