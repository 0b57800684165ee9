// What src/agents/claude/transcript assumes about Claude's files, checked with the real Claude (2.1.325).
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { blocksOf, type Entry, type EntryBlock, isLink } from '../../../../src/agents/claude/transcript/entries.ts';
import { modelForTests } from '../../../model/speaking.ts';
import {
  type ClaudeSetup,
  claudeSetup,
  linesOfEntries,
  linesOfRequest,
  toolPart,
  transcriptState,
  turnRecord,
  writeTranscript,
} from './transcripts.ts';

const model = modelForTests();
const scratch = mkdtempSync(join(tmpdir(), 'throughline-transcript-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const threeTurns = [turnRecord(1), turnRecord(2), turnRecord(3)];
const uuid = () => crypto.randomUUID();

describe('a transcript that we write', { timeout: 300_000 }, () => {
  const parts = (n: number) => [
    { type: 'text', text: `I look ${n}.` } as const,
    toolPart(`call-${n}`, n % 6 === 0 ? { status: 'unknown', output: null } : { name: 'Read file' }),
    { type: 'thought', text: `thought ${n}` } as const,
    ...(n % 4 === 0 ? [toolPart(`toolu_${n}`, { status: 'failed' })] : []),
    { type: 'text', text: `answer ${n}` } as const,
  ];

  test.for([3, 50, 1_000])(
    'of %i turns reaches the model with all prompts, answers, calls and results',
    async (turns, context) => {
      const setup = claudeSetup(context, model.current, scratch);
      const records = Array.from({ length: turns }, (_, i) => {
        return turnRecord(i + 1, {
          ...(i % 2 === 1 ? { parts: parts(i + 1) } : {}),
          agent: i % 5 === 0 ? 'other' : 'claude',
        });
      });
      const entries = await writeTranscript(setup, records);
      const before = await transcriptState(setup.file);
      expect(before).toMatchObject({ whole: true, position: `${entries.length}:${entries.at(-1)?.uuid}` });
      const { run, request } = await setup.resume('now');
      expect(run.result).toMatchObject({ is_error: false, session_id: setup.id });
      expect(linesOfRequest(request)).toEqual([...linesOfEntries(entries), 'user: now']);
      expect(JSON.stringify(request?.raw)).not.toContain('thought 2');
      // The first entry that Claude appended has our last entry as its parent.
      const appended = entriesIn(setup.file).slice(entries.length);
      expect(appended.find(isLink)?.parentUuid).toBe(entries.at(-1)?.uuid);
      expect((await transcriptState(setup.file))?.whole).toBe(true);
    },
  );

  test('has the images, and the outcomes of turns that did not complete', async (context) => {
    const setup = claudeSetup(context, model.current, scratch);
    const image = { type: 'image', mimeType: 'image/png', data: PIXEL } as const;
    const entries = await writeTranscript(setup, [
      turnRecord(1, { prompt: [image, { type: 'text', text: 'what is this?' }] }),
      turnRecord(2, { outcome: 'interrupted', parts: [toolPart('x', { status: 'unknown', output: null })] }),
      turnRecord(3, { outcome: 'cancelled', parts: [] }),
    ]);
    const { request } = await setup.resume('now');
    const texts = linesOfRequest(request);
    // An image has no text.
    expect(texts).toEqual([...linesOfEntries(entries).filter((line) => line !== 'user: undefined'), 'user: now']);
    expect(texts).toContain('assistant: [This turn did not complete: interrupted]');
    expect(JSON.stringify(request?.raw)).toContain(PIXEL);
  });

  // Claude uses the model that the last answer in the file names, if it knows that model.
  test('does not change the model, unless its last answer names one', async (context) => {
    const fresh = claudeSetup(context, model.current, scratch);
    await fresh.run('hello', ['--session-id', fresh.id]);
    const defaultModel = model.current.lastRequest()?.model;
    const setup = claudeSetup(context, model.current, scratch);
    await writeTranscript(setup, threeTurns);
    expect((await setup.resume('now')).request?.model).toBe(defaultModel);
    const withModel = claudeSetup(context, model.current, scratch);
    await writeTranscript(withModel, threeTurns, (entries) =>
      entries.map((entry) => ({ ...entry, message: { ...entry.message, model: 'claude-haiku-4-5' } })),
    );
    expect((await withModel.resume('now')).request?.model).toBe('claude-haiku-4-5');
    expect(defaultModel).not.toBe('claude-haiku-4-5');
  });
});

interface Case {
  /** Damages the transcript of three turns. */
  readonly change: (entries: Entry[]) => (Entry | string)[];
  /** What reaches the model: `p1` and `a1` are prompt and answer of the first turn. Null: Claude refuses the file. */
  readonly arrives: readonly string[] | null;
  /** The defects that we find. */
  readonly defects: readonly string[];
  /** Whether the transcript counts as complete in spite of that. */
  readonly whole?: boolean;
}
const ALL = ['p1', 'a1', 'p2', 'a2', 'p3', 'a3'];
/** Changes the entries with these indexes. */
const set = (indexes: readonly number[], change: (entry: Entry, entries: Entry[]) => object) => (entries: Entry[]) =>
  entries.map((entry, i) => (indexes.includes(i) ? { ...entry, ...change(entry, entries) } : entry));
/** A message with another block at its beginning. */
const withBlock = (entry: Entry, block: EntryBlock) => ({
  message: { ...entry.message, content: [block, ...blocksOf(entry.message)] },
});
/** The beginning of a line. */
const torn = (entry: Entry | undefined) => JSON.stringify(entry).slice(0, 80);
const call = { type: 'tool_use', id: 'toolu_1', name: 'Bash', input: {} };
const everyEntry = [0, 1, 2, 3, 4, 5];
/** What Claude adds in place of a missing answer. */
const NO_RESPONSE = 'No response requested.';

const CASES: Record<string, Case> = {
  'no time on the last message': {
    change: set([5], () => ({ timestamp: undefined })),
    arrives: null,
    defects: ['missing_timestamp'],
  },
  // Claude checks only the time of the last message.
  'no time on another message': {
    change: set([2], () => ({ timestamp: undefined })),
    arrives: ALL,
    defects: ['missing_timestamp'],
  },
  'an empty file': { change: () => [], arrives: null, defects: ['empty'] },
  'no uuids': {
    change: set(everyEntry, () => ({ uuid: undefined })),
    arrives: ['a3'],
    defects: ['missing_uuid', 'empty'],
  },
  'no parents': {
    change: set(everyEntry, () => ({ parentUuid: undefined })),
    arrives: ['a3'],
    defects: ['second_root'],
  },
  'a second root': { change: set([2], () => ({ parentUuid: null })), arrives: ALL.slice(2), defects: ['second_root'] },
  'a parent that does not exist': {
    change: set([2], () => ({ parentUuid: uuid() })),
    arrives: ALL.slice(2),
    defects: ['broken_link'],
  },
  'the same uuid twice': {
    change: (entries) =>
      set([4, 5], (entry) => (entry === entries[4] ? { uuid: entries[0]?.uuid } : { parentUuid: entries[0]?.uuid }))(
        entries,
      ),
    arrives: ALL.slice(1),
    defects: ['duplicate_uuid'],
  },
  'a corrupt line': {
    change: (entries) => entries.map((entry, i) => (i === 2 ? `${torn(entry)}\n` : entry)),
    arrives: ALL.slice(3),
    defects: ['corrupt_line', 'broken_link'],
  },
  'an incomplete last line': {
    change: (entries) => [...entries.slice(0, 5), torn(entries[5])],
    arrives: [...ALL.slice(0, 5), NO_RESPONSE],
    defects: ['torn_tail'],
  },
  'a call without a result in the middle': {
    change: set([3], (entry) => withBlock(entry, call)),
    arrives: ['p1', 'a1', 'p2', 'p3', 'a3'],
    defects: ['dangling_tool'],
  },
  'a call without a result at the end': {
    change: set([5], (entry) => withBlock(entry, call)),
    arrives: [...ALL, NO_RESPONSE],
    defects: ['open_tool'],
    whole: true,
  },
  // Claude 2.1.325 loses nothing here, whichever times go back.
  'times that go back': {
    change: set(everyEntry, (entry, entries) => ({ timestamp: new Date(1e12 - entries.indexOf(entry)).toISOString() })),
    arrives: ALL,
    defects: ['time_goes_back'],
    whole: true,
  },
  'a thought without a signature': {
    change: set([3], (entry) => withBlock(entry, { type: 'thinking', thinking: 'hm' })),
    arrives: ALL,
    defects: ['unsigned_thought'],
    whole: true,
  },
};

/**
 * What Claude does with a file changes only with its version, which the lock file pins. Unit tests check what we find in a file
 * (src/agents/claude/transcript). So `npm run test:all` runs every third case with Claude, and `npm run test:long` runs all.
 */
const selected = <T>(cases: readonly T[]): T[] =>
  cases.filter((_, index) => process.env.THROUGHLINE_LONG === '1' || index % 3 === 0);

describe('a defect is found before the resume, and Claude handles it as described:', () => {
  test.for(selected(Object.entries(CASES)))('%s', async ([, { change, arrives, defects, whole = false }], context) => {
    const setup = claudeSetup(context, model.current, scratch);
    await writeTranscript(setup, threeTurns, change);
    const before = await transcriptState(setup.file);
    expect(before?.whole).toBe(whole);
    expect([...new Set(before?.chain.defects.map(({ kind }) => kind))]).toEqual(defects);
    const { run, request } = await setup.resume('now');
    if (arrives === null) {
      expect(request).toBeUndefined();
      expect(run.errors).toContain('No conversation found with session ID');
      return;
    }
    expect(run.result).toMatchObject({ is_error: false, session_id: setup.id });
    const texts = linesOfRequest(request).filter((line) => /^(?:user|assistant): /.test(line));
    expect(texts.map((text) => text.trim())).toEqual([...arrives.map(spelledOut), 'user: now']);
  });

  test('a call without a result is dropped in the middle, and gets an invented result at the end', async (context) => {
    const callsWith = async (index: number) => {
      const setup = claudeSetup(context, model.current, scratch);
      await writeTranscript(
        setup,
        threeTurns,
        set([index], (entry) => withBlock(entry, call)),
      );
      return linesOfRequest((await setup.resume('now')).request).filter((line) => /^(?:call|result) /.test(line));
    };
    expect(await callsWith(3)).toEqual([]);
    expect(await callsWith(5)).toEqual([
      'call toolu_1 Bash {}',
      expect.stringMatching(/^result toolu_1 failed: .*interrupted/),
    ]);
  });

  test('foreign tool ids and unsigned thoughts reach the model, and times that go back change nothing', async (context) => {
    const setup = claudeSetup(context, model.current, scratch);
    const records = [turnRecord(1, { parts: [toolPart('toolu_a'), { type: 'text', text: 'a' }] })];
    await writeTranscript(setup, records, (entries) => {
      const text = JSON.stringify(
        set([3], (entry) => ({
          ...withBlock(entry, { type: 'thinking', thinking: 'hm' }),
          timestamp: '2001-01-01T00:00:00.000Z',
        }))(entries),
      );
      return JSON.parse(text.replaceAll('toolu_a', 'call:9/x'));
    });
    const kinds = (await transcriptState(setup.file))?.chain.defects.map(({ kind }) => kind);
    expect(kinds).toEqual(['foreign_tool_id', 'unsigned_thought', 'time_goes_back']);
    const { request } = await setup.resume('now');
    expect(linesOfRequest(request)).toContain('result call:9/x ok: out call:9/x');
    expect(JSON.stringify(request?.raw)).toContain('{"type":"thinking","thinking":"hm"}');
  });
});

describe('Claude continues from the leaf that we compute', () => {
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

  /** Claude's note (`last-prompt`) names the leaf from which it last continued. */
  const cases: [string, (entries: Entry[]) => Entry[]][] = [
    ['after a branch', (all) => [...all, ...branch(1)(all)]],
    [
      'after a branch with older times',
      (all) => [...all, ...branch(1)(all).map((e) => ({ ...e, timestamp: '2001-01-01T00:00:00Z' }))],
    ],
    ['when its note names the end of the other branch', (all) => [...all, ...branch(1)(all), note(all[5]?.uuid)]],
    [
      'when its note names an earlier entry of the other branch',
      (all) => [...all, ...branch(1)(all), note(all[3]?.uuid)],
    ],
    ['when a branch comes after its note', (all) => [...all, note(all[5]?.uuid), ...branch(1)(all)]],
    ['when its note names an entry before both branches', (all) => [...all, ...branch(1)(all), note(all[1]?.uuid)]],
    [
      'when its note names an entry that does not exist',
      (all) => [...all, note(all[5]?.uuid), ...branch(1)(all), note(uuid())],
    ],
    [
      'when the last entry is no message',
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
    ['when a subagent wrote last', (all) => [...all, ...branch(1)(all).map((e) => ({ ...e, isSidechain: true }))]],
    ['after parallel tool calls', withParallelCalls],
  ];
  test.for(selected(cases))('%s', async ([, change], context) => {
    const setup = claudeSetup(context, model.current, scratch);
    await writeTranscript(setup, threeTurns, change);
    const before = await transcriptState(setup.file);
    const { request } = await setup.resume('now');
    const texts = linesOfRequest(request).filter((line) => /^(?:user|assistant): /.test(line));
    expect(texts).toEqual([...linesOfChain(setup, before?.chain.leaf), 'user: now']);
  });

  /** The parent of each of two results is its call. The parent of the answer is the second result, and the note names the first. */
  function withParallelCalls(all: Entry[]): Entry[] {
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

/** The texts of the chain that ends with a leaf. */
function linesOfChain({ file }: ClaudeSetup, leaf: string | null | undefined): string[] {
  const entries = new Map(entriesIn(file).map((entry) => [entry.uuid, entry]));
  const chain: Entry[] = [];
  for (let entry = entries.get(leaf ?? ''); entry; entry = entries.get(entry.parentUuid ?? '')) chain.unshift(entry);
  const messages = chain.filter(({ type }) => type === 'user' || type === 'assistant');
  return linesOfEntries(messages).filter((line) => /^(?:user|assistant): /.test(line));
}

function entriesIn(file: string): Entry[] {
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line) as Entry);
}

/** The message that `p1` or `a1` stands for. */
function spelledOut(short: string): string {
  const [, who, n] = /^([pa])(\d)$/.exec(short) ?? [];
  if (who === undefined) return `assistant: ${short}`;
  return who === 'p' ? `user: prompt ${n}` : `assistant: answer ${n}`;
}

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
