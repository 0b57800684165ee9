import { describe, expect, test } from 'vitest';
import type { Update } from '../../core/turn/update.ts';
import type { Lease } from '../../leases/lease.ts';
import type { Write } from '../../ports/store/writes.ts';
import { EventWriter } from './event-writer.ts';

const [HIGH, LOW] = ['\ud83d', '\ude00'];

const said = (text: string, messageId = 'm1'): Update => {
  return { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text }, messageId };
};
const thought = (text: string): Update => ({ sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text } });
const tool: Update = { sessionUpdate: 'tool_call', toolCallId: 't', title: `Re${LOW}ad`, rawOutput: { [HIGH]: HIGH } };

/** What is stored of these, each as it came when `flushMs` is 0. */
async function stored(updates: readonly Update[], flushMs: number) {
  const written: Update[] = [];
  const say = (one: Write) => {
    if (one.write === 'event' && one.event.kind === 'turn.update') written.push(one.event.payload.update);
  };
  const lease = { say, ready: async () => {} } as unknown as Lease;
  const writer = new EventWriter(lease, 'turn', { now: () => 0, monotonic: () => 0 }, flushMs);
  for (const update of updates) await writer.add(update);
  writer.end();
  return { written, parts: writer.parts.parts() };
}

describe.each([0, 50])('chunks of text that are joined for %i ms', (flushMs) => {
  test('may split a character: it is stored whole', async () => {
    const { written, parts } = await stored([said(`a${HIGH}`), said(`${LOW}b`), said(HIGH), said(LOW)], flushMs);
    expect(JSON.stringify(written)).not.toMatch(/\\ud|\ufffd/i);
    expect(parts).toEqual([{ type: 'text', text: 'a😀b😀' }]);
  });

  test('of two messages are not joined: an unpaired surrogate is replaced', async () => {
    const { written, parts } = await stored([said(`a${HIGH}`), said(`${LOW}b`, 'm2')], flushMs);
    expect(JSON.stringify(written)).not.toMatch(/\\ud/i);
    expect(parts).toEqual([{ type: 'text', text: 'a\ufffd\ufffdb' }]);
  });

  test('keep their order, whatever comes between the two parts of a character', async () => {
    const { written, parts } = await stored([said(`a${HIGH}`), tool, said(LOW), thought(HIGH)], flushMs);
    expect(written.map(({ sessionUpdate }) => sessionUpdate)).toEqual(
      expect.arrayContaining(['agent_message_chunk', 'tool_call', 'agent_thought_chunk']),
    );
    expect(parts).toMatchObject([
      { type: 'text', text: 'a\ufffd' },
      { type: 'tool', name: 'Re\ufffdad', output: '{"\ufffd":"\ufffd"}' },
      { type: 'text', text: '\ufffd' },
      { type: 'thought', text: '\ufffd' },
    ]);
  });
});
