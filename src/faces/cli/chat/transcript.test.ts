import { expect, test } from 'vitest';
import type { EventKind } from '../../../core/event.ts';
import type { PublicEvent, PublicEventPayloads } from '../../../core/public/event.ts';
import { RETRACTED, retryUpdate, type Update } from '../../../core/turn/update.ts';
import type { Line } from './text/cells.ts';
import { Transcript } from './transcript.ts';

const text = (line: Line) =>
  line
    .map((one) => one.text)
    .join('')
    .trimEnd();

/** A transcript, and the lines that it has printed. */
function watched({ screen = 100 } = {}) {
  const transcript = new Transcript();
  const paper: string[] = [];
  let seq = 0;
  let erased = 0;
  const print = () => {
    const { erase, lines } = transcript.flush(60, Math.min(screen, paper.length));
    paper.splice(paper.length - erase, erase, ...lines.map(text));
    erased += erase;
  };
  const see = <K extends EventKind>(kind: K, payload: PublicEventPayloads[K], turnId: string | null = 't1', at = 0) => {
    seq += 1;
    transcript.see({ conversationId: 'c', seq, kind, turnId, at, payload } as unknown as PublicEvent);
    print();
  };
  const say = (words: string, messageId?: string) =>
    update({
      sessionUpdate: 'agent_message_chunk',
      content: { type: 'text', text: words },
      ...(messageId && { messageId }),
    });
  const update = (one: Update, at = 0) => see('turn.update', { acp: 1, update: one }, 't1', at);
  const queue = (id = 't1', n = 1, requestId: string | null = null, preview = 'Hello') =>
    see('turn.queued', { n, agent: 'claude', requestId, retryOf: null, preview }, id);
  const start = (id = 't1', n = 1) => see('turn.started', { n, attempt: 1 }, id);
  const end = (
    outcome: 'completed' | 'cancelled' | 'failed' | 'interrupted' = 'completed',
    reply = '',
    id = 't1',
    n = 1,
  ) => {
    const failure =
      outcome === 'completed' ? null : ({ code: 'agent_failed', message: 'It broke.', hint: 'Try again.' } as const);
    see('turn.ended', { n, outcome, failure, reply, usage: {} as never }, id);
  };
  const live = (now = 0) => transcript.live(60, now).map(text);
  return { transcript, paper, print, see, say, update, queue, start, end, live, erased: () => erased };
}

test('finished blocks are printed permanently, the open one is redrawn', () => {
  const { paper, live, queue, start, say, end } = watched();
  queue();
  start();
  say('First **par');
  expect(paper).toEqual(['', '› Hello']);
  expect(live()).toEqual(['', 'First par']);
  say('agraph**\n\nSecond');
  expect(paper).toEqual(['', '› Hello', '', 'First paragraph']);
  expect(live()).toEqual(['', 'Second']);
  end('completed', 'First **paragraph**\n\nSecond');
  expect(paper).toEqual(['', '› Hello', '', 'First paragraph', '', 'Second']);
  expect(live()).toEqual([]);
});

test('text that the agent retracts is erased, and its replacement is printed', () => {
  const { paper, queue, start, say, update, end, erased } = watched();
  queue();
  start();
  say('Half an ans\n\nmore', 'm1');
  expect(paper).toContain('Half an ans');
  update({ sessionUpdate: RETRACTED, messageId: 'm1' } as Update);
  expect(paper).toEqual(['', '› Hello']);
  expect(erased()).toBe(2);
  say('The whole answer.', 'm2');
  end('completed', 'The whole answer.');
  expect(paper).toEqual(['', '› Hello', '', 'The whole answer.']);
});

test('text that is retracted after it has left the screen stays, and a line reports it', () => {
  const { paper, queue, start, say, update, end } = watched({ screen: 0 });
  queue();
  start();
  say('Half an ans\n\nmore', 'm1');
  update({ sessionUpdate: RETRACTED, messageId: 'm1' } as Update);
  say('The whole answer.', 'm2');
  end('completed', 'The whole answer.');
  expect(paper.slice(3)).toEqual([
    'Half an ans',
    '',
    'The agent has taken back what it said above. It continues',
    'here:',
    '',
    'The whole answer.',
  ]);
});

test('a failed attempt is removed, and the next one shows the reason', () => {
  const { paper, queue, start, say, see, end } = watched();
  queue();
  start();
  say('Half\n\nan answer');
  see('turn.retrying', { n: 1, attempt: 1, failure: { code: 'agent_failed', message: 'overloaded' } });
  say('All of it.');
  end('completed', 'All of it.');
  expect(paper).toEqual(['', '› Hello', '', 'trying again: overloaded', '', 'All of it.']);
});

test('a tool is one line: what, where, how long, and how it ended', () => {
  const { transcript, paper, live, queue, start, update, say, end } = watched();
  transcript.cwd = '/project';
  queue();
  start();
  const read = {
    sessionUpdate: 'tool_call',
    toolCallId: 'a',
    title: 'Read',
    locations: [{ path: '/project/src/x.ts' }],
  };
  update({ ...read, status: 'in_progress' } as Update, 1_000);
  update(
    { sessionUpdate: 'tool_call', toolCallId: 'b', title: 'Bash', rawInput: { command: 'npm test' } } as Update,
    2_000,
  );
  expect(live(3_500)).toEqual(['', '● Read src/x.ts · 2.5 s', '● Bash npm test · 1.5 s']);
  update({ sessionUpdate: 'tool_call_update', toolCallId: 'b', status: 'failed' } as Update, 4_000);
  expect(paper).toEqual(['', '› Hello']);
  update({ sessionUpdate: 'tool_call_update', toolCallId: 'a', status: 'completed' } as Update, 13_000);
  expect(paper.slice(2)).toEqual(['', '✓ Read src/x.ts · 12 s', '✗ Bash npm test · 2.0 s · failed']);
  say('Done.');
  end('completed', 'Done.');
  expect(paper.slice(-2)).toEqual(['', 'Done.']);
});

test('a prompt that waits for another is shown as queued, and printed when it begins', () => {
  const { transcript, paper, queue, start, end } = watched();
  transcript.sends('r1', 'mine,\nin full');
  expect(transcript.unsent).toEqual(['mine,\nin full']);
  queue('t1', 1, 'r1', 'mine, in');
  queue('t2', 2, null, 'somebody else’s');
  start();
  expect(transcript).toMatchObject({ unsent: [], queued: [{ text: 'somebody else’s' }], running: { id: 't1' } });
  end('cancelled');
  start('t2', 2);
  expect(paper).toEqual(['', '› mine,', '  in full', '', 'Cancelled.', '', '› somebody else’s']);
  queue('t3', 3);
  end('cancelled', '', 't3', 3);
  expect(transcript).toMatchObject({ queued: [], running: { id: 't2' } });
});

test('a failed turn says why and what to do, and keeps what was said', () => {
  const { paper, queue, start, say, end } = watched();
  queue();
  start();
  say('So far');
  end('interrupted', 'So far and further');
  expect(paper.slice(2)).toEqual(['', 'So far and further', '', 'Turn 1 interrupted: It broke. Try again.']);
});

const RECEIPT = {
  ...{ turn: 1, attempt: 1, agent: 'claude', sessionId: 's', carried: 2, condensed: 0, dropped: 0, shortened: 0 },
  ...{
    leftOut: { outputs: 0, images: 0, files: 0 },
    unknownBefore: null,
    unsettled: false,
    modelCalls: 0,
    toolsRan: [],
  },
  ...{ tried: [], lockWaits: { count: 0, ms: 0 }, proof: 'proved' },
} as unknown as PublicEventPayloads['restore.receipt'];

test('a seam is one sentence, once; the same session has none', () => {
  const { paper, queue, start, see } = watched();
  queue();
  start();
  for (const rung of ['live', 'new', 'resume', 'resume'] as const) see('restore.receipt', { ...RECEIPT, rung });
  expect(paper.slice(2)).toEqual(['', '┄┄ restored by resume: 2 turns carried, 0 dropped, proof', 'proved ┄┄']);
});

test('restoring shows how far it is', () => {
  const { transcript, see, queue, start } = watched();
  queue();
  start();
  see('restore.started', { rung: 'transcript', total: 12 });
  expect(transcript.activity?.what).toBe('restoring the context by transcript: 12 turns');
  see('restore.progress', { rung: 'transcript', done: 3, total: 12 });
  expect(transcript.activity?.what).toBe('restoring by transcript: 3 of 12 turns');
});

const OPTIONS = [
  { optionId: 'y', name: 'Allow', kind: 'allow_once' },
  { optionId: 'n', name: 'Reject', kind: 'reject_once' },
] as const;

test('a question is open until it is answered, and shows by whom if it was answered elsewhere', () => {
  const { transcript, paper, queue, start, see } = watched();
  queue();
  start();
  for (const permissionId of ['p1', 'p2', 'p3'])
    see('permission.asked', { permissionId, title: `write ${permissionId}`, toolCall: null, options: OPTIONS });
  transcript.answersHere('p1');
  see('permission.answered', { permissionId: 'p1', optionId: 'y', by: 'local' });
  see('permission.answered', { permissionId: 'p2', optionId: 'n', by: 'ann' });
  see('permission.withdrawn', { permissionId: 'p3', reason: 'the turn ended' });
  expect(transcript.questions).toEqual([]);
  expect(paper.slice(3)).toEqual([
    '? write p1 · answered: Allow',
    '? write p2 · answered: Reject, elsewhere, by ann',
    '? write p3 · question withdrawn: the turn ended',
  ]);
});

test('a note during an answer is shown at that point, and the rest of the answer follows', () => {
  const { paper, transcript, print, queue, start, say, update, end, live } = watched();
  queue();
  start();
  say('First words and ha');
  transcript.note({ text: 'a list', styles: [] });
  print();
  say('lf a word.\n\n```js\none();\ntw');
  expect(paper).toEqual([
    '',
    '› Hello',
    '',
    'First words and',
    '',
    'a list',
    '',
    'half a word.',
    '',
    '  js',
    '  one();',
  ]);
  expect(live()).toEqual(['  tw']);
  transcript.note({ text: 'another', styles: [] });
  print();
  say('o();\n```\nThe end.');
  update({ sessionUpdate: 'tool_call', toolCallId: 'x', title: 'Read', status: 'completed' } as Update);
  say('After.');
  end();
  expect(paper.slice(10)).toEqual(['  one();', '', 'another', '', '  two();', 'The end.', '', '✓ Read', '', 'After.']);
});

test('text that is retracted and sent again next to a note is shown once', () => {
  const { paper, transcript, print, queue, start, say, update, end } = watched();
  queue();
  start();
  say('Wrong words ', 'm1');
  transcript.note({ text: 'a list', styles: [] });
  print();
  update({ sessionUpdate: RETRACTED, messageId: 'm1' } as Update);
  for (const word of ['Right ', 'words ', 'at ', 'last.']) say(word, 'm2');
  end();
  expect(paper.filter((line) => line.includes('Wrong'))).toEqual([]);
  expect(paper.join(' ').match(/Right\s+words|at\s|last\.|a list/g)).toHaveLength(4);
});

test('text that the agent sent before a question is shown above the answer', () => {
  const { paper, transcript, print, see, queue, start, say, end } = watched();
  queue();
  start();
  say('I want to write');
  const options = [{ optionId: 'no', name: 'Reject', kind: 'reject_once' }];
  see('permission.asked', { permissionId: 'p', title: 'write notes', options } as never);
  see('permission.answered', { permissionId: 'p', optionId: 'no', by: 'local' } as never);
  say('Then not.');
  transcript.note({ text: 'a list', styles: [] });
  print();
  end();
  const asked = '? write notes · answered: Reject, elsewhere, by local';
  expect(paper.slice(2)).toEqual(['', 'I want to write', '', asked, '', 'Then not.', '', 'a list']);
});

test('while the agent asks its model again, the activity says so, until something of an answer has come', () => {
  const { transcript, see, say, update, queue, start, end } = watched();
  queue();
  start();
  see('turn.sent', { n: 1, sent: {} as never });
  update(retryUpdate({ attempt: 4, of: 10, inMs: 35_000, status: null, reason: null }));
  update({ sessionUpdate: 'session_info_update', title: 'A title' });
  expect(transcript.activity?.what).toBe('The model’s API does not answer (attempt 4 of 10, next in 35 s)');
  say('Hello');
  expect(transcript.activity?.what).toBe('working');
  end();
});
