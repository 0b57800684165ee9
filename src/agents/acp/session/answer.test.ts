import { describe, expect, test } from 'vitest';
import { PartsBuilder, type RecordPart, replyText } from '../../../core/turn/record.ts';
import { RETRACTED, type Update } from '../../../core/turn/update.ts';
import { Answer } from './answer.ts';

const says = (text: string, messageId?: string): Update => ({
  sessionUpdate: 'agent_message_chunk',
  content: { type: 'text', text },
  ...(messageId === undefined ? {} : { messageId }),
});
const thinks = (text: string, messageId: string): Update => ({
  sessionUpdate: 'agent_thought_chunk',
  content: { type: 'text', text },
  messageId,
});
const tool: Update = { sessionUpdate: 'tool_call', toolCallId: 't', title: 'Look' };

type Step = Update | 'retried' | 'finished';

/** The record of a turn in which this happens. */
function recorded(...steps: Step[]): { parts: RecordPart[]; told: Update[] } {
  const answer = new Answer();
  const parts = new PartsBuilder();
  const told: Update[] = [];
  const tell = (...updates: Update[]) => {
    for (const update of updates) parts.add(update);
    told.push(...updates);
  };
  for (const step of steps) {
    if (step === 'finished') answer.finished();
    else if (step === 'retried') tell(...answer.retried());
    else tell(step, ...answer.see(step));
  }
  return { parts: parts.parts(), told };
}

const reply = (...steps: Step[]) => replyText(recorded(...steps).parts);

describe('when the agent reports that it repeats the model call', () => {
  test.each<[string, string, Step[]]>([
    ['the message that it streamed', 'ABC', [says('A', '1'), says('x', '1'), 'retried', says('ABC', '2')]],
    ['one of an agent without ids', 'ABC', [says('A'), says('x'), 'retried', says('A'), says('BC')]],
    ['each of several', 'ABC', [says('A'), 'retried', says('AB'), 'retried', says('ABC')]],
    ['not what came before a tool', 'Look.\n\nABC', [says('Look.'), tool, says('A'), 'retried', says('ABC')]],
    ['not another message', 'One. ABC', [says('One. ', '1'), says('A', '2'), 'retried', says('ABC', '3')]],
    [
      'not what is final of the message',
      'One. ABC',
      [says('One. ', '1'), 'finished', says('A', '1'), 'retried', says('ABC', '2')],
    ],
    ['nothing that is final', 'One.', [says('One.', '1'), 'finished', 'retried']],
    ['nothing, where nothing was streamed', 'ABC', ['retried', says('ABC')]],
  ])('it retracts %s', (_, expected, steps) => {
    expect(reply(...steps)).toBe(expected);
  });

  test('thoughts of the message are retracted as well', () => {
    expect(recorded(thinks('hm', '1'), says('A', '1'), 'retried', says('ABC', '2')).parts).toEqual([
      { type: 'text', text: 'ABC' },
    ]);
  });
});

describe('a message that directly follows another one', () => {
  test.each<[string, string, Step[]]>([
    ['and begins with all of it replaces it', 'ABCD', [says('AB', '1'), says('A', '2'), says('BCD', '2')]],
    ['and is the same replaces it', 'AB', [says('AB', '1'), says('AB', '2')]],
    ['and is different is added', 'ABAC', [says('AB', '1'), says('A', '2'), says('C', '2')]],
    ['and is shorter is added', 'ABA', [says('AB', '1'), says('A', '2')]],
    ['after a tool is added', 'AB\n\nABC', [says('AB', '1'), tool, says('ABC', '2')]],
    ['that is final is added', 'ABABC', [says('AB', '1'), 'finished', says('ABC', '2')]],
    ['of the same id is added', 'ABABC', [says('AB', '1'), says('ABC', '1')]],
    ['without ids is added', 'ABABC', [says('AB'), says('ABC')]],
  ])('%s', (_, expected, steps) => {
    expect(reply(...steps)).toBe(expected);
  });

  test('leads to a retraction that names the replaced message', () => {
    const { told } = recorded(says('AB', '1'), says('A', '2'), says('B', '2'));
    expect(told.at(-1)).toEqual({ sessionUpdate: RETRACTED, messageId: '1' });
  });

  test('a thought is not compared with a text', () => {
    expect(recorded(thinks('AB', '1'), says('ABC', '2')).parts).toHaveLength(2);
  });
});

describe('a message as it is in the storage of the agent', () => {
  const compared = (record: Record<string, string>, ...steps: Update[]) => {
    const answer = new Answer();
    const parts = new PartsBuilder();
    for (const step of steps) for (const update of [step, ...answer.see(step)]) parts.add(update);
    const retracted = answer.recorded(new Map(Object.entries(record)));
    for (const update of retracted) parts.add(update);
    return { reply: replyText(parts.parts()), retracted: retracted.length };
  };

  test.each<[string, Record<string, string>, string, number, Update[]]>([
    ['its end replaces it', { 1: 'ABC' }, 'ABC', 1, [says('A', '1'), says('B', '1'), says('AB', '1'), says('C', '1')]],
    ['another answer replaces it', { 1: 'XY' }, 'XY', 1, [says('AB', '1'), says('X', '1'), says('Y', '1')]],
    [
      'before a tool, in its place',
      { 1: 'AB', 2: 'C' },
      'AB\n\nC',
      1,
      [says('A', '1'), says('AB', '1'), tool, says('C', '2')],
    ],
    ['all of it changes nothing', { 1: 'AB' }, 'AB', 0, [says('A', '1'), says('B', '1')]],
    ['nothing changes nothing', {}, 'AB', 0, [says('AB', '1')]],
    ['an empty text changes nothing', { 1: '' }, 'AB', 0, [says('AB', '1')]],
    ['something else changes nothing', { 1: 'ABC' }, 'AB', 0, [says('AB', '1')]],
    ['thoughts are not counted', { 1: 'AB' }, 'AB', 1, [thinks('hm, A', '1'), says('A', '1'), says('AB', '1')]],
  ])('%s', (_, record, expected, retracted, steps) => {
    expect(compared(record, ...steps)).toEqual({ reply: expected, retracted });
  });
});

test('comparing a long answer that is streamed again takes the same time for every piece', () => {
  const pieces = Array.from({ length: 20_000 }, (_, i) => `word ${i} `);
  const answer = new Answer();
  for (const piece of pieces) answer.see(says(piece, '1'));
  const before = process.threadCpuUsage();
  const retracted = pieces.flatMap((piece) => answer.see(says(piece, '2')));
  expect(retracted).toEqual([{ sessionUpdate: RETRACTED, messageId: '1' }]);
  // The processor time, which other programs do not change. Comparing the whole text with every piece took ten seconds.
  const { user, system } = process.threadCpuUsage(before);
  expect(user + system).toBeLessThan(2_000_000);
});
