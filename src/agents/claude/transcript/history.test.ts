import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { transcriptAt } from '../../../../test/contracts/transcript-file.ts';
import { temporaryFolder } from '../../../../test/temporary-folder.ts';
import { record } from '../../../../test/values/plain.ts';
import { replyText } from '../../../core/turn/record.ts';
import type { Entry } from './entries.ts';
import { historyOf } from './history.ts';
import { synthesise } from './synthesise.ts';

let dir: string;
let file: string;
beforeEach(() => {
  dir = temporaryFolder();
  file = join(dir, 'one.jsonl');
});

let time = 0;
const at = () => {
  time += 1000;
  return new Date(Date.UTC(2026, 0, 1) + time).toISOString();
};
const user = (uuid: string, parentUuid: string | null, content: unknown, more: object = {}): Entry => ({
  ...{ type: 'user', uuid, parentUuid, timestamp: at(), sessionId: 's', message: { role: 'user', content } as never },
  ...more,
});
const text = (words: string) => ({ type: 'text', text: words });
const answer = (uuid: string, parentUuid: string, ...content: { type: string }[]): Entry => ({
  ...{ type: 'assistant', uuid, parentUuid, timestamp: at(), sessionId: 's' },
  message: { role: 'assistant', id: `msg-${uuid.charAt(0)}`, model: 'm', content },
});
const call = (id: string) => ({ type: 'tool_use', id, name: 'Bash', input: { command: `echo ${id}` } });
const result = (uuid: string, parent: string, id: string) =>
  user(uuid, parent, [{ type: 'tool_result', tool_use_id: id, content: `out ${id}` }]);

const write = (...entries: Entry[]) =>
  writeFileSync(file, entries.map((entry) => `${JSON.stringify(entry)}\n`).join(''));
async function read() {
  const history = await historyOf(transcriptAt(file));
  const turns = history?.turns.map(({ prompt, parts, outcome }) => ({
    prompt,
    reply: replyText(parts),
    tools: parts.flatMap((part) => (part.type === 'tool' ? [`${part.id} ${part.status} ${part.output}`] : [])),
    outcome,
  }));
  return history && { ...history, turns };
}

test('every prompt is a turn with its answer, its tools and its times', async () => {
  write(
    user('p1', null, 'Hello'),
    answer('a1', 'p1', text('Hi.')),
    user('p2', 'a1', [
      text('Look'),
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } },
      { type: 'image', source: { type: 'url', url: 'http://127.0.0.1/a.png' } },
    ]),
    answer('b1', 'p2', call('t1')),
    result('r1', 'b1', 't1'),
    { ...answer('b2', 'r1', text('Seen.')) },
  );
  const history = await historyOf(transcriptAt(file));
  expect(history).toMatchObject({ unknownBefore: false, condensed: 0, position: '6:b2' });
  expect((await read())?.turns).toEqual([
    { prompt: [text('Hello')], reply: 'Hi.', tools: [], outcome: 'completed' },
    {
      prompt: [text('Look'), { type: 'image', data: 'AAAA', mimeType: 'image/png' }, text('[image]')],
      reply: 'Seen.',
      tools: ['t1 completed out t1'],
      outcome: 'completed',
    },
  ]);
  const [first] = history?.turns ?? [];
  expect((first?.endedAt ?? 0) - (first?.startedAt ?? 0)).toBe(1000);
});

test('tools that were called at once all belong to the turn; a branch that was left does not', async () => {
  write(
    user('p1', null, 'Do'),
    answer('a1', 'p1', call('t1')),
    answer('a2', 'a1', call('t2')),
    result('r1', 'a1', 't1'),
    result('r2', 'a2', 't2'),
    { ...answer('b1', 'r2', text('Both.')) },
    user('x1', 'b1', 'Left behind'),
    answer('x2', 'x1', text('Gone.')),
    user('p2', 'b1', 'Instead'),
    answer('c1', 'p2', text('Yes.')),
  );
  expect((await read())?.turns).toMatchObject([
    { reply: 'Both.', tools: ['t1 completed out t1', 't2 completed out t2'] },
    { prompt: [text('Instead')], reply: 'Yes.' },
  ]);
});

test('turns before a compaction are still there, and marked as condensed', async () => {
  const boundary = { type: 'system', subtype: 'compact_boundary', uuid: 'c', parentUuid: null, timestamp: at() };
  write(
    user('p1', null, 'One'),
    answer('a1', 'p1', text('1')),
    { ...boundary, logicalParentUuid: 'a1' },
    user('s', 'c', 'This session is being continued', { isCompactSummary: true }),
    user('p2', 's', 'Two'),
    answer('b1', 'p2', text('2')),
  );
  const history = await read();
  expect(history).toMatchObject({ condensed: 1, unknownBefore: false });
  expect(history?.turns?.map(({ reply }) => reply)).toEqual(['1', '2']);
  write({ ...boundary, logicalParentUuid: 'gone' }, user('p2', 'c', 'Two'), answer('b1', 'p2', text('2')));
  expect(await read()).toMatchObject({ condensed: 0, unknownBefore: true, turns: [{ reply: '2' }] });
});

test('a turn in the middle of which Claude condensed has all of its answer', async () => {
  const boundary = { type: 'system', subtype: 'compact_boundary', uuid: 'c', parentUuid: null, timestamp: at() };
  write(
    user('p1', null, 'One'),
    answer('a1', 'p1', text('1')),
    user('p2', 'a1', 'Two'),
    answer('b1', 'p2', call('t1')),
    result('r1', 'b1', 't1'),
    { ...boundary, logicalParentUuid: 'r1' },
    user('s', 'c', 'This session is being continued', { isCompactSummary: true }),
    answer('d1', 's', call('t2')),
    result('r2', 'd1', 't2'),
    { ...answer('e1', 'r2', text('Done.')) },
  );
  expect(await read()).toMatchObject({
    condensed: 2,
    turns: [
      { reply: '1', outcome: 'completed' },
      { reply: 'Done.', tools: ['t1 completed out t1', 't2 completed out t2'], outcome: 'completed' },
    ],
  });
  // Before the answer: the summary may be of what came before, and the prompt follows it.
  write(
    user('p1', null, 'One'),
    answer('a1', 'p1', text('1')),
    user('p2', 'a1', 'Two'),
    { ...boundary, logicalParentUuid: 'p2' },
    user('s', 'c', 'This session is being continued', { isCompactSummary: true }),
    answer('d1', 's', text('2')),
  );
  expect(await read()).toMatchObject({ condensed: 1, turns: [{ reply: '1' }, { reply: '2', outcome: 'completed' }] });
});

test('commands, their output, notices and internal messages of Claude', async () => {
  write(
    user('m', null, 'Caveat', { isMeta: true }),
    user(
      'p1',
      'm',
      '<command-name>/cost</command-name>\n<command-message>cost</command-message>\n<command-args></command-args>',
    ),
    user('o1', 'p1', '<local-command-stdout>$1</local-command-stdout>'),
    user('p2', 'o1', 'Go'),
    answer('a1', 'p2', text('On')),
    user('n1', 'a1', [text('[Request interrupted by user]')]),
    user('p3', 'n1', 'And'),
    answer('b1', 'p3', text('Waiting.')),
    user('q', 'b1', 'A task has ended.', { promptSource: 'system' }),
    answer('c1', 'q', text('Done.')),
  );
  expect((await read())?.turns).toMatchObject([
    { prompt: [text('/cost')], reply: '$1', outcome: 'completed' },
    { prompt: [text('Go')], reply: 'On', outcome: 'interrupted' },
    { prompt: [text('And')], reply: 'Waiting.Done.', outcome: 'completed' },
  ]);
});

test('a file that is not there or damaged has no history', async () => {
  expect(await historyOf(transcriptAt(file))).toBeNull();
  write(user('p2', 'gone', 'Two'), answer('b1', 'p2', text('2')));
  expect(await historyOf(transcriptAt(file))).toBeNull();
});

test('ten thousand turns', async () => {
  const records = Array.from({ length: 10_000 }, (_, i) => record(i + 1));
  const session = { id: 's', cwd: dir, version: '2.1.325', before: Date.now() };
  writeFileSync(file, [...synthesise(records, session)].join(''));
  const history = await historyOf(transcriptAt(file));
  expect(history).toMatchObject({ unknownBefore: false, condensed: 0 });
  expect(history?.turns.map(({ prompt }) => prompt)).toEqual(records.map(({ prompt }) => prompt));
  expect(replyText(history?.turns[9_999]?.parts ?? [])).toBe('answer 10000');
});
