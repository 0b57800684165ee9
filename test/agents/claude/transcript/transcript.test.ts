// What src/agents/claude/transcript says of Claude's files, held against the real Claude (2.1.325).
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { blocksOf, type Entry, type EntryBlock, isLink } from '../../../../src/agents/claude/transcript/entries.ts';
import { modelForTests } from '../../../model/speaking.ts';
import {
  type ClaudePlace,
  claudePlace,
  rehydrate,
  standing,
  toldBy,
  toldTo,
  toolPart,
  turnRecord,
} from './transcripts.ts';

const model = modelForTests();
const scratch = mkdtempSync(join(tmpdir(), 'throughline-transcript-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const three = [turnRecord(1), turnRecord(2), turnRecord(3)];
const uuid = () => crypto.randomUUID();

describe('a history that we write', { timeout: 300_000 }, () => {
  const parts = (n: number) => [
    { type: 'text', text: `I look ${n}.` } as const,
    toolPart(`call-${n}`, n % 6 === 0 ? { status: 'unknown', output: null } : { name: 'Read file' }),
    { type: 'thought', text: `thought ${n}` } as const,
    ...(n % 4 === 0 ? [toolPart(`toolu_${n}`, { status: 'failed' })] : []),
    { type: 'text', text: `answer ${n}` } as const,
  ];

  test.for([3, 50, 1_000])(
    'of %i turns is resumed as turns: prompts, answers, calls, results',
    async (turns, context) => {
      const place = claudePlace(context, model.current, scratch);
      const records = Array.from({ length: turns }, (_, i) => {
        return turnRecord(i + 1, {
          ...(i % 2 === 1 ? { parts: parts(i + 1) } : {}),
          agent: i % 5 === 0 ? 'other' : 'claude',
        });
      });
      const entries = await rehydrate(place, records);
      const before = await standing(place.file);
      expect(before).toMatchObject({ whole: true, position: `${entries.length}:${entries.at(-1)?.uuid}` });
      const { run, request } = await place.resume('now');
      expect(run.result).toMatchObject({ is_error: false, session_id: place.id });
      expect(toldTo(request)).toEqual([...toldBy(entries), 'user: now']);
      expect(JSON.stringify(request?.raw)).not.toContain('thought 2');
      // The proof after: what Claude appended hangs on our last entry.
      const appended = linesOf(place.file).slice(entries.length);
      expect(appended.find(isLink)?.parentUuid).toBe(entries.at(-1)?.uuid);
      expect((await standing(place.file))?.whole).toBe(true);
    },
  );

  test('keeps images, and the outcomes of turns that did not complete', async (context) => {
    const place = claudePlace(context, model.current, scratch);
    const image = { type: 'image', mimeType: 'image/png', data: PIXEL } as const;
    const entries = await rehydrate(place, [
      turnRecord(1, { prompt: [image, { type: 'text', text: 'what is this?' }] }),
      turnRecord(2, { outcome: 'interrupted', parts: [toolPart('x', { status: 'unknown', output: null })] }),
      turnRecord(3, { outcome: 'cancelled', parts: [] }),
    ]);
    const { request } = await place.resume('now');
    const texts = toldTo(request);
    expect(texts).toEqual([...toldBy(entries).filter((said) => said !== 'user: undefined'), 'user: now']);
    expect(texts).toContain('assistant: [This turn did not complete: interrupted]');
    expect(JSON.stringify(request?.raw)).toContain(PIXEL);
  });

  // AGENT-FACTS has "model persists": it is taken from the last answer of the file, if Claude knows it.
  test('does not choose the model, unless it names one', async (context) => {
    const fresh = claudePlace(context, model.current, scratch);
    await fresh.run('hello', ['--session-id', fresh.id]);
    const usual = model.current.lastRequest()?.model;
    const place = claudePlace(context, model.current, scratch);
    await rehydrate(place, three);
    expect((await place.resume('now')).request?.model).toBe(usual);
    const told = claudePlace(context, model.current, scratch);
    await rehydrate(told, three, (entries) =>
      entries.map((entry) => ({ ...entry, message: { ...entry.message, model: 'claude-haiku-4-5' } })),
    );
    expect((await told.resume('now')).request?.model).toBe('claude-haiku-4-5');
    expect(usual).not.toBe('claude-haiku-4-5');
  });
});

/** What arrives of a damaged file: `p1` and `a1` are prompt and answer of the first turn; null: Claude refuses it. */
interface Case {
  readonly change: (entries: Entry[]) => (Entry | string)[];
  readonly arrives: readonly string[] | null;
  readonly found: readonly string[];
  readonly whole?: boolean;
}
const ALL = ['p1', 'a1', 'p2', 'a2', 'p3', 'a3'];
const set = (at: readonly number[], change: (entry: Entry, entries: Entry[]) => object) => (entries: Entry[]) =>
  entries.map((entry, i) => (at.includes(i) ? { ...entry, ...change(entry, entries) } : entry));
const withBlock = (entry: Entry, block: EntryBlock) => ({
  message: { ...entry.message, content: [block, ...blocksOf(entry.message)] },
});
const half = (entry: Entry | undefined) => JSON.stringify(entry).slice(0, 80);
const call = { type: 'tool_use', id: 'toolu_1', name: 'Bash', input: {} };
const every = [0, 1, 2, 3, 4, 5];
const NOTHING_SAID = 'No response requested.';

const CASES: Record<string, Case> = {
  'no time on the last message': {
    change: set([5], () => ({ timestamp: undefined })),
    arrives: null,
    found: ['missing_timestamp'],
  },
  // AGENT-FACTS calls every missing time loud; only the last one is looked at.
  'no time on another message': {
    change: set([2], () => ({ timestamp: undefined })),
    arrives: ALL,
    found: ['missing_timestamp'],
  },
  'an empty file': { change: () => [], arrives: null, found: ['empty'] },
  'no uuids': { change: set(every, () => ({ uuid: undefined })), arrives: ['a3'], found: ['missing_uuid', 'empty'] },
  'no parents': { change: set(every, () => ({ parentUuid: undefined })), arrives: ['a3'], found: ['second_root'] },
  'a second root': { change: set([2], () => ({ parentUuid: null })), arrives: ALL.slice(2), found: ['second_root'] },
  'a link to nowhere': {
    change: set([2], () => ({ parentUuid: uuid() })),
    arrives: ALL.slice(2),
    found: ['broken_link'],
  },
  'the same uuid twice': {
    change: (entries) =>
      set([4, 5], (entry) => (entry === entries[4] ? { uuid: entries[0]?.uuid } : { parentUuid: entries[0]?.uuid }))(
        entries,
      ),
    arrives: ALL.slice(1),
    found: ['duplicate_uuid'],
  },
  'a corrupt line': {
    change: (entries) => entries.map((entry, i) => (i === 2 ? `${half(entry)}\n` : entry)),
    arrives: ALL.slice(3),
    found: ['corrupt_line', 'broken_link'],
  },
  'a last line that is torn': {
    change: (entries) => [...entries.slice(0, 5), half(entries[5])],
    arrives: [...ALL.slice(0, 5), NOTHING_SAID],
    found: ['torn_tail'],
  },
  'a call that the conversation passed over': {
    change: set([3], (entry) => withBlock(entry, call)),
    arrives: ['p1', 'a1', 'p2', 'p3', 'a3'],
    found: ['dangling_tool'],
  },
  'a call at the end': {
    change: set([5], (entry) => withBlock(entry, call)),
    arrives: [...ALL, NOTHING_SAID],
    found: ['open_tool'],
    whole: true,
  },
  // AGENT-FACTS has "tail lost"; not seen with 2.1.325, whichever of them went back.
  'times that go back': {
    change: set(every, (entry, entries) => ({ timestamp: new Date(1e12 - entries.indexOf(entry)).toISOString() })),
    arrives: ALL,
    found: ['time_goes_back'],
    whole: true,
  },
  'a thought without signature': {
    change: set([3], (entry) => withBlock(entry, { type: 'thinking', thinking: 'hm' })),
    arrives: ALL,
    found: ['unsigned_thought'],
    whole: true,
  },
};

/**
 * What Claude does with a file changes with its version alone, which the lock file holds, and what we find in one is tested without it
 * (src/agents/claude/transcript). So `npm test` asks Claude about every third of these, and `npm run test:long` about all.
 */
const asked = <T>(cases: readonly T[]): T[] =>
  cases.filter((_, index) => process.env.THROUGHLINE_LONG === '1' || index % 3 === 0);

describe('a defect is found before the resume, and Claude does this with it:', () => {
  test.for(asked(Object.entries(CASES)))('%s', async ([, { change, arrives, found, whole = false }], context) => {
    const place = claudePlace(context, model.current, scratch);
    await rehydrate(place, three, change);
    const before = await standing(place.file);
    expect(before?.whole).toBe(whole);
    expect([...new Set(before?.chain.defects.map(({ kind }) => kind))]).toEqual(found);
    const { run, request } = await place.resume('now');
    if (arrives === null) {
      expect(request).toBeUndefined();
      expect(run.errors).toContain('No conversation found with session ID');
      return;
    }
    expect(run.result).toMatchObject({ is_error: false, session_id: place.id });
    const texts = toldTo(request).filter((said) => /^(?:user|assistant): /.test(said));
    expect(texts.map((text) => text.trim())).toEqual([...arrives.map(spelledOut), 'user: now']);
  });

  test('a call without a result is dropped, and gets an invented result at the end of the file', async (context) => {
    const calls = async (at: number) => {
      const place = claudePlace(context, model.current, scratch);
      await rehydrate(
        place,
        three,
        set([at], (entry) => withBlock(entry, call)),
      );
      return toldTo((await place.resume('now')).request).filter((said) => /^(?:call|result) /.test(said));
    };
    expect(await calls(3)).toEqual([]);
    expect(await calls(5)).toEqual([
      'call toolu_1 Bash {}',
      expect.stringMatching(/^result toolu_1 failed: .*interrupted/),
    ]);
  });

  test('times that go back are found; foreign tool ids and unsigned thoughts are sent to the model', async (context) => {
    const place = claudePlace(context, model.current, scratch);
    const records = [turnRecord(1, { parts: [toolPart('toolu_a'), { type: 'text', text: 'a' }] })];
    await rehydrate(place, records, (entries) => {
      const text = JSON.stringify(
        set([3], (entry) => ({
          ...withBlock(entry, { type: 'thinking', thinking: 'hm' }),
          timestamp: '2001-01-01T00:00:00.000Z',
        }))(entries),
      );
      return JSON.parse(text.replaceAll('toolu_a', 'call:9/x'));
    });
    const kinds = (await standing(place.file))?.chain.defects.map(({ kind }) => kind);
    expect(kinds).toEqual(['foreign_tool_id', 'unsigned_thought', 'time_goes_back']);
    const { request } = await place.resume('now');
    expect(toldTo(request)).toContain('result call:9/x ok: out call:9/x');
    expect(JSON.stringify(request?.raw)).toContain('{"type":"thinking","thinking":"hm"}');
  });
});

describe('Claude goes on from the leaf that we compute', () => {
  type Branch = (entries: Entry[]) => Entry[];
  const branch =
    (from: number): Branch =>
    (entries) => {
      const [prompt, reply] = [
        { ...(entries[4] as Entry), uuid: uuid() },
        { ...(entries[5] as Entry), uuid: uuid() },
      ];
      return [
        { ...prompt, parentUuid: entries[from]?.uuid ?? null, message: { role: 'user', content: 'branch prompt' } },
        {
          ...reply,
          parentUuid: prompt.uuid,
          message: { ...reply.message, id: 'msg_b', content: [{ type: 'text', text: 'branch' }] },
        },
      ];
    };
  const note = (leafUuid: string | undefined): Entry => ({ type: 'last-prompt', lastPrompt: 'x', leafUuid });

  const places: [string, (entries: Entry[]) => Entry[]][] = [
    ['after a branch', (all) => [...all, ...branch(1)(all)]],
    [
      'after a branch with older times',
      (all) => [...all, ...branch(1)(all).map((e) => ({ ...e, timestamp: '2001-01-01T00:00:00Z' }))],
    ],
    ['where its note is on the other branch', (all) => [...all, ...branch(1)(all), note(all[5]?.uuid)]],
    ['where its note is before the end of the other branch', (all) => [...all, ...branch(1)(all), note(all[3]?.uuid)]],
    ['where a branch came after its note', (all) => [...all, note(all[5]?.uuid), ...branch(1)(all)]],
    ['where its note is above both branches', (all) => [...all, ...branch(1)(all), note(all[1]?.uuid)]],
    ['where its note names nothing', (all) => [...all, note(all[5]?.uuid), ...branch(1)(all), note(uuid())]],
    [
      'where the last entry is no message',
      (all) => [
        ...all,
        {
          ...(all[5] as Entry),
          type: 'attachment',
          attachment: { type: 'date' },
          uuid: uuid(),
          parentUuid: all[1]?.uuid ?? null,
        },
      ],
    ],
    ['where a subagent wrote last', (all) => [...all, ...branch(1)(all).map((e) => ({ ...e, isSidechain: true }))]],
    ['after tools that were called at once', parallel],
  ];
  test.for(asked(places))('%s', async ([, change], context) => {
    const place = claudePlace(context, model.current, scratch);
    await rehydrate(place, three, change);
    const before = await standing(place.file);
    const { request } = await place.resume('now');
    const texts = toldTo(request).filter((said) => /^(?:user|assistant): /.test(said));
    expect(texts).toEqual([...toldByChain(place, before?.chain.leaf), 'user: now']);
  });

  /** Two results hang on their own calls, the answer on the later one, and the note on the other. */
  function parallel(all: Entry[]): Entry[] {
    const [, , prompt, reply, next, last] = all as [Entry, Entry, Entry, Entry, Entry, Entry];
    const called = (id: string, parentUuid: string | undefined): Entry => {
      const content = [{ ...call, id }];
      return {
        ...reply,
        uuid: uuid(),
        parentUuid: parentUuid ?? null,
        message: { ...reply.message, id: 'msg_p', content },
      };
    };
    const result = (id: string, { uuid: parentUuid }: Entry): Entry => {
      const content = [{ type: 'tool_result', tool_use_id: id, content: `out ${id}`, is_error: false }];
      return { ...prompt, uuid: uuid(), parentUuid: parentUuid ?? null, message: { role: 'user', content } };
    };
    const one = called('toolu_1', prompt.uuid);
    const two = called('toolu_2', one.uuid);
    const [first, second] = [result('toolu_2', two), result('toolu_1', one)];
    const rest = [{ ...reply, parentUuid: second.uuid ?? null }, next, last];
    return [...all.slice(0, 3), one, two, first, note(first.uuid), second, ...rest];
  }
});

/** What the chain from a leaf says, text by text. */
function toldByChain({ file }: ClaudePlace, leaf: string | null | undefined): string[] {
  const entries = new Map(linesOf(file).map((entry) => [entry.uuid, entry]));
  const chain: Entry[] = [];
  for (let at = entries.get(leaf ?? ''); at; at = entries.get(at.parentUuid ?? '')) chain.unshift(at);
  const messages = chain.filter(({ type }) => type === 'user' || type === 'assistant');
  return toldBy(messages).filter((said) => /^(?:user|assistant): /.test(said));
}

function linesOf(file: string): Entry[] {
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line) as Entry);
}

function spelledOut(short: string): string {
  const [, who, n] = /^([pa])(\d)$/.exec(short) ?? [];
  if (who === undefined) return `assistant: ${short}`;
  return who === 'p' ? `user: prompt ${n}` : `assistant: answer ${n}`;
}

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
